"""Validates a checklist: its form, everything that it names, and that everything it states is judged."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from kdoctor.catalog.load import Catalog
from kdoctor.check import Check, Parameter
from kdoctor.checklist.extends import KINDS, Override
from kdoctor.checklist.problems import Problem
from kdoctor.checklist.resolve import SEVERITY_PATTERNS, Checklist, add_judges, make_checklist, matches, parameter_value
from kdoctor.checklist.schema import ChecklistDocument
from kdoctor.errors import did_you_mean
from kdoctor.facts import canonical_name
from kdoctor.model import ASSUMPTIONS
from kdoctor.smoke.scenario import STRATEGIES
from kdoctor.yamldoc.nodes import Node
from kdoctor.yamldoc.source import Source
from kdoctor.yamldoc.validation import validate

NOUN = "checklist"
_LONGEST = 60
_EMPTY = {
    "gpus": "count, at_least or model",
    "framework": "tensorflow, keras, flavour or backend",
    "sdk": "cuda or cudnn",
}
"""Assumptions that must not be empty, to their keys."""


def validate_checklist(
    source: Source, catalog: Catalog, origin: str, *, extends: tuple[str, ...] = (), overrides: Sequence[Override] = ()
) -> tuple[Checklist | None, list[Problem]]:
    """The checklist, or everything that is wrong with it.

    Args:
        source: the document, merged if it extends another.
        catalog: what it may name.
        origin: the file, or ``shipped``.
        extends: the checklists that it was merged from.
        overrides: what it replaced in them.
    """
    root = source.root
    refused = ChecklistDocument.other_schema(root, NOUN)
    if refused:
        return None, [*source.problems, refused]
    document, problems = validate(ChecklistDocument, root, NOUN)
    reported = {_place(problem) for problem in source.problems}
    problems += _Names(root, catalog, is_extended=bool(extends)).problems()
    problems = [*source.problems, *(problem for problem in problems if _place(problem) not in reported)]
    if document is None or problems:
        return None, problems
    checklist = add_judges(make_checklist(document, catalog, origin), catalog)
    checklist = replace(checklist, extends=extends, overrides=tuple(overrides))
    problems = [*_kinds(checklist, root, catalog), *_unjudged(checklist, root, catalog)]
    return (None if problems else checklist), problems


def _place(problem: Problem) -> tuple[str, int | None, int | None]:
    return problem.source, problem.line, problem.column


class _Names:
    """Looks up everything that a document names. Works on nodes, so that one invalid part does not hide others."""

    def __init__(self, root: Node, catalog: Catalog, *, is_extended: bool) -> None:
        self._root = root
        self._catalog = catalog
        self._is_extended = is_extended
        listed = [found for _, found in self._ids("checks") if found in catalog.checks]
        stated = _stated(root)
        judging = [check.id for check in catalog.checks.values() if stated.intersection(check.judges)]
        self._selected = catalog.closure([*listed, *judging])

    def problems(self) -> list[Problem]:
        """Every name that does not exist or is not allowed where it is."""
        return [
            *self._checks(),
            *self._scenarios(),
            *self._without(),
            *self._waivers(),
            *self._rollback(),
            *self._assumptions(),
        ]

    def _ids(self, section: str) -> Iterator[tuple[Node, str]]:
        """The entries of a list with their ids, where those are strings."""
        for entry in self._root.entries(section):
            found = entry.string("id")
            if found is not None:
                yield entry, found

    def _duplicates(self, section: str) -> Iterator[Problem]:
        first: dict[str, int] = {}
        nodes = [(entry.value["id"], found) for entry, found in self._ids(section)]
        for node, found in sorted(nodes, key=lambda item: item[0].mark.line):  # merging changes the order
            if found in first:
                yield node.problem(f"{found} is listed twice (first on line {first[found]})")
            first.setdefault(found, node.mark.line)

    def _checks(self) -> Iterator[Problem]:
        yield from self._duplicates("checks")
        for entry, found in self._ids("checks"):
            check = self._catalog.checks.get(found)
            if check is None:
                yield _unknown(entry.value["id"], "check", self._catalog.checks)
                continue
            for name, node in entry.mapping("parameters").items():
                yield from _parameter(check, name, node)

    def _scenarios(self) -> Iterator[Problem]:
        yield from self._duplicates("scenarios")
        for entry, found in self._ids("scenarios"):
            scenario = self._catalog.scenarios.get(found)
            kind, strategy = entry.string("kind"), entry.string("strategy")
            if scenario is None:
                yield _unknown(entry.value["id"], "scenario", self._catalog.scenarios)
            elif kind in KINDS and kind != scenario.kind:
                yield entry.value["kind"].problem(f"{found} is of kind {scenario.kind!r}, not {kind!r}")
            elif strategy in STRATEGIES and strategy != scenario.strategy:
                yield entry.value["strategy"].problem(f"{found} uses strategy {scenario.strategy!r}, not {strategy!r}")

    def _without(self) -> Iterator[Problem]:
        """Names of kinds. What is inherited and left out was looked up when the checklists were merged."""
        named = {*self._catalog.checks, *self._catalog.scenarios}
        for key, node in self._root.mapping("without").items():
            if key in named and not self._is_extended:
                message = f"{key} is not inherited, as this checklist has no 'extends': remove it from the list instead"
                yield node.problem(message, at_key=True)
            elif key not in named and key not in KINDS:
                meant = did_you_mean(key, [*KINDS, *named]) or f"; kinds are {', '.join(KINDS)}"
                yield node.problem(f"{key!r} is neither a kind of scenario nor a check{meant}", at_key=True)

    def _waivers(self) -> Iterator[Problem]:
        selected = {check.id for check in self._selected}
        for entry in self._root.entries("waivers"):
            found = entry.string("check")
            if found and set(found) & set("*?["):
                yield entry.value["check"].problem(f"{found!r} is a pattern: a waiver names one check, by its id")
            elif found in self._catalog.checks and found not in selected:
                yield entry.value["check"].problem(f"waives {found}, which is not in this checklist")
            elif found is not None and found not in self._catalog.checks:
                yield _unknown(entry.value["check"], "check", self._catalog.checks)

    def _rollback(self) -> Iterator[Problem]:
        section = self._root.mapping("rollback")
        known = [check.id for check in self._selected] + [check.family for check in self._selected]
        for key in ("at_once", "fix_forward", "investigate"):
            patterns = section[key].value if key in section else None
            for node in patterns if isinstance(patterns, list) else ():
                pattern = node.value
                # An inherited rule may be for a check that this checklist leaves out.
                is_own = node.mark.file == self._root.mark.file
                if not is_own or not isinstance(pattern, str) or not pattern or pattern in SEVERITY_PATTERNS:
                    continue
                if not any(matches(check, pattern) for check in self._selected):
                    meant = did_you_mean(pattern, [*known, *SEVERITY_PATTERNS])
                    yield node.problem(f"{pattern!r} matches no check of this checklist{meant}")

    def _assumptions(self) -> Iterator[Problem]:
        stated = self._root.get("assumptions")
        if stated is None:
            return
        gpus = stated.mapping("gpus")
        if "count" in gpus and "at_least" in gpus:
            message = "'count' (exact) and 'at_least' (minimum) cannot be used together"
            yield gpus["at_least"].problem(message, at_key=True)
        for name, keys in _EMPTY.items():
            node = stated.get(name)
            if node is not None and node.value == {}:
                yield node.problem(f"{name!r} is empty: expected {keys}")
        seen: dict[str, str] = {}
        for name, node in stated.mapping("packages").items():
            first = seen.setdefault(canonical_name(name), name)
            if first != name:
                yield node.problem(f"{name!r} and {first!r} are the same package: keep one", at_key=True)


def _stated(root: Node) -> set[str]:
    """Names of the assumptions in a document that may be invalid elsewhere."""
    stated = root.get("assumptions")
    if stated is None or not isinstance(stated.value, dict):
        return set()
    gpus = stated.mapping("gpus")
    found = {name for name in stated.value if name in ASSUMPTIONS}
    if any(key in gpus and gpus[key].value for key in ("count", "at_least")):
        found.add("gpus.count")
    if "model" in gpus:
        found.add("gpus.model")
    return found


def _unknown(node: Node, noun: str, known: Iterable[str]) -> Problem:
    return node.problem(f"unknown {noun} {node.value!r}{did_you_mean(node.value, known) or '; does it need --plugin?'}")


def _parameter(check: Check, name: str, node: Node) -> Iterator[Problem]:
    parameter = check.parameters.get(name)
    if parameter is None:
        meant = did_you_mean(name, check.parameters) or f"; expected {', '.join(check.parameters) or 'none'}"
        yield node.problem(f"{check.id} has no parameter {name!r}{meant}", at_key=True)
    elif why := _misfit(parameter, node.data):
        yield node.problem(f"parameter {name!r} of {check.id} cannot be {_shown(node.data)}: {why}")


def _misfit(parameter: Parameter, value: Any) -> str | None:
    """Why a value does not fit a parameter, or None."""
    try:
        parameter_value(parameter, value)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"]
        return f"{message[0].lower()}{message[1:]}"
    except ValueError as error:
        return str(error)
    return None


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _kinds(checklist: Checklist, root: Node, catalog: Catalog) -> Iterator[Problem]:
    """A checklist tries the healthy case, an edge case and a failure, or states why not."""
    listed = {entry.scenario.kind for entry in checklist.scenarios}
    for kind in KINDS:
        if kind in checklist.without and kind in listed:
            message = f"a scenario of kind {kind!r} is listed, so the reason for leaving it out is obsolete"
            yield root.at(("without", kind)).problem(message, at_key=True)
        elif kind not in checklist.without and kind not in listed:
            known = [scenario.id for scenario in catalog.scenarios.values() if scenario.kind == kind]
            left_out = [name for name in known if name in checklist.without]
            add = f"add one to 'scenarios', such as {known[0]}, or " if known and not left_out else ""
            message = f"no scenario of kind {kind!r}: {add}state why, 'without: {{{kind}: \"the reason\"}}'"
            place = ("without", left_out[0]) if left_out else ("scenarios",)
            yield root.at(place).problem(message, at_key=True)


def _unjudged(checklist: Checklist, root: Node, catalog: Catalog) -> Iterator[Problem]:
    """What the checklist states but none of its checks tests."""
    selected = catalog.closure(entry.check.id for entry in checklist.entries)
    judged = {assumption for check in selected for assumption in check.judges}
    for assumption in sorted(checklist.assumptions.stated() - judged):
        judges = [check.id for check in catalog.checks.values() if assumption in check.judges]
        left_out = [name for name in judges if name in checklist.without]
        add = f": remove {' and '.join(left_out)} from 'without', or remove the assumption"
        add = add if left_out else ", and neither does any installed check"
        message = f"no check of this checklist judges the assumption {assumption!r}{add}"
        section, _, name = assumption.partition(".")
        node = root.at(("assumptions", section))
        # The assumption gpus.count has two keys.
        node = (node.get(name) or node.get("at_least") or node) if name else node
        yield node.problem(message, at_key=True)
    listed = {entry.scenario.id for entry in checklist.scenarios}
    for index, entry in enumerate(checklist.scenarios):
        name = entry.scenario.id
        if name not in {check.scenario for check in selected}:
            judges = [check.id for check in catalog.checks.values() if check.scenario == name]
            message = f"no check of this checklist judges scenario {name}: add {' or '.join(judges)} to 'checks'"
            yield root.at(("scenarios", index, "id")).problem(message)
    for check in selected:
        if check.scenario and check.scenario in checklist.without:
            message = f"{check.id} judges scenario {check.scenario}: leave out {check.id}, too, with its reason"
            yield root.at(("without", check.scenario)).problem(message, at_key=True)
        elif check.scenario and check.scenario not in listed:
            message = f"{check.id} judges scenario {check.scenario}, which is not listed: add it to 'scenarios'"
            yield _entry(checklist, root, check, catalog).problem(message)


def _entry(checklist: Checklist, root: Node, check: Check, catalog: Catalog) -> Node:
    """The id of the check, or of the entry that requires it."""
    for index, entry in enumerate(checklist.entries):
        if check in catalog.closure([entry.check.id]):
            return root.at(("checks", index, "id"))
    return root.at(("checks",))
