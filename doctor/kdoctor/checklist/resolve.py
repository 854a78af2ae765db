"""A document and a catalog into a checklist: everything that is named exists, and everything stated is judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from kdoctor.check import Check, Parameter
from kdoctor.checklist.document import read_document
from kdoctor.checklist.extends import KINDS, Override
from kdoctor.checklist.parts import Document, Part
from kdoctor.checklist.problems import Problem
from kdoctor.engine.catalog import Catalog
from kdoctor.engine.judge import Rules
from kdoctor.engine.report import ChecklistName, ScenarioNote, Waiver
from kdoctor.errors import did_you_mean
from kdoctor.facts import canonical_name
from kdoctor.model import Assumptions, GpuAssumption, Severity
from kdoctor.smoke.scenario import STRATEGIES, Scenario, Strategy
from kdoctor.yamldoc import Path, Source


@dataclass(frozen=True, kw_only=True)
class ChecklistEntry:
    """A check as a checklist asks for it."""

    check: Check
    severity: Severity
    parameters: Mapping[str, Any] = field(default_factory=dict)
    accept_unknown: str | None = None
    """Why it may be unknown here."""


@dataclass(frozen=True, kw_only=True)
class ScenarioEntry:
    """A smoke training as a checklist asks for it."""

    scenario: Scenario
    replicas: int | Literal["gpus"]
    """Number of logical CPU devices, or one replica on each visible GPU."""
    expect: str
    strategy: Strategy = "mirrored"

    @property
    def note(self) -> ScenarioNote:
        """What a report says of it."""
        return ScenarioNote(id=self.scenario.id, kind=self.scenario.kind, expect=self.expect)


@dataclass(frozen=True, kw_only=True)
class RollbackPolicy:
    """What was decided in advance about failures."""

    decides: str
    within: str | None = None
    """By when, in words."""
    at_once: tuple[str, ...] = ()
    """Patterns of the checks whose failure means: roll back at once."""
    fix_forward: tuple[str, ...] = ()
    """Patterns of the checks whose failure means: mend it here."""
    investigate: tuple[str, ...] = ()
    """Patterns of the checks whose failure means: look into it first."""


@dataclass(frozen=True, kw_only=True)
class Checklist:
    """What people agreed on, ready to be planned. Everything that it names exists."""

    name: str
    version: int
    owner: str
    source: str
    """The file it was read from, or ``shipped``."""
    assumptions: Assumptions
    entries: tuple[ChecklistEntry, ...]
    """In the file's order."""
    scenarios: tuple[ScenarioEntry, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    rollback: RollbackPolicy | None = None
    without: Mapping[str, str] = field(default_factory=dict)
    """Kind of scenario, or id of what was inherited and left out, to the reason."""
    extends: tuple[str, ...] = ()
    """The checklists below it, the nearest first."""
    overrides: tuple[Override, ...] = ()
    """What it says otherwise than those."""

    @property
    def asked_as(self) -> str:
        """What names it on the command line: a shipped one's name, or the file."""
        return self.name if self.source == "shipped" else self.source

    @property
    def title(self) -> ChecklistName:
        """Its name and version, for the report."""
        return ChecklistName(name=self.name, version=self.version)

    def rules(self, *, today: date, fail_on: Severity = Severity.ERROR, allow_unknown: bool = False) -> Rules:
        """What the judge takes from it besides the checks."""
        return Rules(
            assumptions=self.assumptions,
            waivers=self.waivers,
            today=today,
            fail_on=fail_on,
            allow_unknown=allow_unknown,
        )


_EMPTY = {
    "gpus": "count, at_least or model",
    "framework": "tensorflow, keras, flavour or backend",
    "sdk": "cuda or cudnn",
}
"""Assumptions that must not be empty to what may stand in them."""

SEVERITY_PATTERNS = tuple(f"severity:{severity.value}" for severity in Severity)
"""Patterns of a rollback section that mean every check of that severity."""


def matches(check: Check, pattern: str) -> bool:
    """Whether a pattern (an id, a family, or a glob over ids) means that check."""
    return pattern == check.family or fnmatchcase(check.id, pattern)


def resolve(
    source: Source, catalog: Catalog, origin: str, *, extends: tuple[str, ...] = (), overrides: Sequence[Override] = ()
) -> tuple[Checklist | None, list[Problem]]:
    """The checklist, or every problem of its form and of what it names.

    Args:
        source: the document, put together if it extends another.
        catalog: what it may name.
        origin: the file, or ``shipped``.
        extends: the checklists that it was put together of.
        overrides: what it replaced in them.
    """
    document, problems = read_document(source)
    told = {_place(problem) for problem in source.problems}
    problems = [*source.problems, *(problem for problem in problems if _place(problem) not in told)]
    if isinstance(source.data, dict) and "schema" in source.data:
        problems += _Names(source, catalog).problems()
    if document is not None and not problems:
        checklist = replace(_make(document, catalog, origin), extends=extends, overrides=tuple(overrides))
        problems += [*_kinds(checklist, source, catalog), *_unjudged(checklist, source, catalog)]
        if not problems:
            return checklist, []
    return None, problems


def _place(problem: Problem) -> tuple[str, int | None, int | None]:
    return problem.source, problem.line, problem.column


class _Names:
    """Looks up everything that a document names. It reads plain values, so that one broken part hides no other."""

    def __init__(self, source: Source, catalog: Catalog) -> None:
        self._source = source
        self._catalog = catalog
        self._listed = [entry["id"] for _, entry in self._entries("checks") if entry.get("id") in catalog.checks]

    def problems(self) -> list[Problem]:
        """Every name that does not exist, or stands where it must not."""
        return [
            *self._checks(),
            *self._scenarios(),
            *self._without(),
            *self._waivers(),
            *self._rollback(),
            *self._assumptions(),
        ]

    def _entries(self, section: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The mappings of a list that have, where they have one, an id that is text."""
        entries = self._source.data.get(section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get("id", ""), str):
                yield (section, index), entry

    def _unknown(self, path: Path, what: str, word: str, known: Iterable[str]) -> Problem:
        known = tuple(known)
        return self._source.problem(path, f"unknown {what} {word!r}{did_you_mean(word, known)}")

    def _twice(self, section: str) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for path, entry in self._entries(section):
            if "id" not in entry:
                continue
            place = (*path, "id")
            line = self._source.values[place][0]
            if entry["id"] in first:
                message = f"{entry['id']} is listed twice (first in line {first[entry['id']]}): keep one"
                yield self._source.problem(place, message)
            first.setdefault(entry["id"], line)

    def _checks(self) -> Iterator[Problem]:
        yield from self._twice("checks")
        for path, entry in self._entries("checks"):
            check = self._catalog.checks.get(entry.get("id", ""))
            if check is not None and isinstance(entry.get("parameters"), dict):
                yield from self._parameters((*path, "parameters"), check, entry["parameters"])
            elif check is None and "id" in entry:
                yield self._unknown((*path, "id"), "check", entry["id"], self._catalog.checks)

    def _parameters(self, path: Path, check: Check, given: Mapping[str, Any]) -> Iterator[Problem]:
        for name, value in given.items():
            parameter = check.parameters.get(name)
            if parameter is None:
                known = ", ".join(check.parameters) or "none"
                hint = did_you_mean(name, check.parameters) or f"; it takes {known}"
                message = f"{check.id} has no parameter {name!r}{hint}"
                yield self._source.problem((*path, name), message, at_key=True)
                continue
            wrong = _misfit(parameter, value)
            if wrong:
                message = f"parameter {name!r} of {check.id} does not take {_shown(value)}: {wrong}"
                yield self._source.problem((*path, name), message)

    def _scenarios(self) -> Iterator[Problem]:
        yield from self._twice("scenarios")
        for path, entry in self._entries("scenarios"):
            if "id" not in entry:
                continue
            scenario = self._catalog.scenarios.get(entry["id"])
            if scenario is None:
                yield self._unknown((*path, "id"), "scenario", entry["id"], self._catalog.scenarios)
            elif entry.get("kind") in ("baseline", "edge-case", "failure-path") and entry["kind"] != scenario.kind:
                message = f"{scenario.id} is of kind {scenario.kind!r}, not {entry['kind']!r}"
                yield self._source.problem((*path, "kind"), message)
            elif entry.get("strategy") in STRATEGIES and entry["strategy"] != scenario.strategy:
                message = f"{scenario.id} is about strategy {scenario.strategy!r}, not {entry['strategy']!r}"
                yield self._source.problem((*path, "strategy"), message)

    def _without(self) -> Iterator[Problem]:
        """Names of kinds; what is inherited and left out was looked up where the two were put together."""
        stated = self._source.data.get("without")
        named = {*self._catalog.checks, *self._catalog.scenarios}
        for key in stated if isinstance(stated, dict) else ():
            if key in named and not self._is_extended:
                message = f"{key} is not inherited: without 'extends', leave it out of the list"
                yield self._source.problem(("without", key), message, at_key=True)
            elif key not in named and key not in KINDS:
                meant = did_you_mean(key, [*KINDS, *named]) or f"; kinds are {', '.join(KINDS)}"
                message = f"{key!r} is neither a kind of scenario nor a check{meant}"
                yield self._source.problem(("without", key), message, at_key=True)

    @property
    def _is_extended(self) -> bool:
        return bool(self._source.files)

    def _waivers(self) -> Iterator[Problem]:
        selected = {check.id for check in self._catalog.closure(self._listed)}
        for path, entry in self._entries("waivers"):
            check_id = entry.get("check")
            if not isinstance(check_id, str) or check_id in selected:
                continue
            if check_id in self._catalog.checks:
                message = f"this waives {check_id}, which the checklist does not ask for"
                yield self._source.problem((*path, "check"), message)
            else:
                yield self._unknown((*path, "check"), "check", check_id, self._catalog.checks)

    def _rollback(self) -> Iterator[Problem]:
        section = self._source.data.get("rollback")
        selected = self._catalog.closure(self._listed)
        for key in ("at_once", "fix_forward", "investigate"):
            patterns = section.get(key) if isinstance(section, dict) else None
            for index, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
                if not isinstance(pattern, str) or not pattern or pattern in SEVERITY_PATTERNS:
                    continue
                if not any(matches(check, pattern) for check in selected):
                    known = [*(check.id for check in selected), *(check.family for check in selected)]
                    known += SEVERITY_PATTERNS
                    message = f"{pattern!r} matches no check of this checklist{did_you_mean(pattern, known)}"
                    yield self._source.problem(("rollback", key, index), message)

    def _assumptions(self) -> Iterator[Problem]:
        stated = self._source.data.get("assumptions")
        stated = stated if isinstance(stated, dict) else {}
        gpus, packages = stated.get("gpus"), stated.get("packages")
        if isinstance(gpus, dict) and "count" in gpus and "at_least" in gpus:
            message = "'count' (exactly) and 'at_least' exclude each other: keep one"
            yield self._source.problem(("assumptions", "gpus", "at_least"), message, at_key=True)
        for name, keys in _EMPTY.items():
            if stated.get(name) == {}:
                yield self._source.problem(("assumptions", name), f"{name!r} states nothing: give {keys}")
        seen: dict[str, str] = {}
        for name in packages if isinstance(packages, dict) else ():
            first = seen.setdefault(canonical_name(name), name)
            if first != name:
                message = f"{name!r} and {first!r} are one package: keep one"
                yield self._source.problem(("assumptions", "packages", name), message, at_key=True)


def _misfit(parameter: Parameter, value: Any) -> str | None:
    """Why a value does not fit a parameter, or None. JSON's strict rules are YAML's: a list fits a tuple."""
    try:
        # Nothing compares with NaN, so a limit of NaN would pass everything.
        text = json.dumps(value, default=str, allow_nan=False)
        TypeAdapter(parameter.annotation).validate_json(text, strict=True)
    except ValueError as error:
        if not isinstance(error, ValidationError):
            return "it must be finite"
        first = error.errors(include_url=False)[0]
        return f"{first['msg'][0].lower()}{first['msg'][1:]}"
    return None


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - a line of a message


def _make(document: Document, catalog: Catalog, origin: str) -> Checklist:
    rollback = document.rollback
    return Checklist(
        name=document.name,
        version=document.version,
        owner=document.owner,
        source=origin,
        assumptions=_make_assumptions(document),
        entries=tuple(_make_entries(document, catalog)),
        scenarios=tuple(
            ScenarioEntry(
                scenario=catalog.scenarios[part.id],
                replicas=part.replicas if isinstance(part.replicas, int) else "gpus",
                expect=part.expect,
                strategy=catalog.scenarios[part.id].strategy,
            )
            for part in document.scenarios
        ),
        waivers=_make_waivers(document),
        rollback=RollbackPolicy(**dict(rollback)) if rollback else None,
        without=dict(document.without),
    )


def _make_waivers(document: Document) -> tuple[Waiver, ...]:
    if not document.waivers:
        return ()

    return tuple(Waiver(**dict(part)) for part in document.waivers)


def _make_assumptions(document: Document) -> Assumptions:
    part = document.assumptions
    return Assumptions(
        python=part.python,
        packages=dict(part.packages),
        gpus=GpuAssumption(**dict(part.gpus)) if part.gpus else None,
        environment=dict(part.environment),
        framework=_stated(part.framework),
        sdk=_stated(part.sdk),
        driver=part.driver,
        libraries=dict(part.libraries),
        flags=dict(part.flags),
        image=part.image,
    )


def _stated(part: Part | None) -> dict[str, str]:
    return {name: value for name, value in part or () if value is not None}


def _make_entries(document: Document, catalog: Catalog) -> Iterator[ChecklistEntry]:
    for part in document.checks:
        check = catalog.checks[part.id]
        yield ChecklistEntry(
            check=check,
            severity=part.severity or check.severity,
            parameters={name: _fitted(check.parameters[name], value) for name, value in part.parameters.items()},
            accept_unknown=part.accept_unknown,
        )


def _fitted(parameter: Parameter, value: Any) -> Any:
    return TypeAdapter(parameter.annotation).validate_json(json.dumps(value, default=str), strict=True)


def _kinds(checklist: Checklist, source: Source, catalog: Catalog) -> Iterator[Problem]:
    """A list shows the healthy case, an edge and a failure; or it says why not."""
    listed = {entry.scenario.kind for entry in checklist.scenarios}
    for kind in KINDS:
        if kind in checklist.without and kind in listed:
            message = f"a scenario of kind {kind!r} is listed, so the reason to do without one is out of date"
            yield source.problem(("without", kind), message, at_key=True)
        elif kind not in checklist.without and kind not in listed:
            known = [scenario.id for scenario in catalog.scenarios.values() if scenario.kind == kind]
            add = f"add {' or '.join(known)} to 'scenarios', or " if known else ""
            message = f"no scenario of kind {kind!r}: {add}say why not, 'without: {{{kind}: \"the reason\"}}'"
            yield source.problem(("scenarios",), message, at_key=True)


def _unjudged(checklist: Checklist, source: Source, catalog: Catalog) -> Iterator[Problem]:
    """What the checklist states but nothing on it would test."""
    selected = catalog.closure(entry.check.id for entry in checklist.entries)
    judged = {assumption for check in selected for assumption in check.judges}
    for assumption in sorted(checklist.assumptions.stated() - judged):
        judges = [check.id for check in catalog.checks.values() if assumption in check.judges]
        add = f": add {' or '.join(judges)} to 'checks'" if judges else ", and no installed check does"
        path = ("assumptions", *assumption.split("."))
        if path not in source.keys:
            path = ("assumptions", "gpus", "at_least")
        yield source.problem(path, f"no check of this list judges the assumption {assumption!r}{add}", at_key=True)
    listed = {entry.scenario.id for entry in checklist.scenarios}
    for index, entry in enumerate(checklist.scenarios):
        name = entry.scenario.id
        if name not in {check.scenario for check in selected}:
            judges = [check.id for check in catalog.checks.values() if check.scenario == name]
            message = f"no check of this list judges scenario {name}: add {' or '.join(judges)} to 'checks'"
            yield source.problem(("scenarios", index, "id"), message)
    for check in selected:
        if check.scenario and check.scenario not in listed:
            message = f"{check.id} judges scenario {check.scenario}, which is not listed: add it to 'scenarios'"
            yield source.problem(_entry_path(checklist, check, catalog), message)


def _entry_path(checklist: Checklist, check: Check, catalog: Catalog) -> Path:
    """Where the check, or what brings it along, is listed."""
    for index, entry in enumerate(checklist.entries):
        if check in catalog.closure([entry.check.id]):
            return ("checks", index, "id")
    return ("checks",)
