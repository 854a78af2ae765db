"""Writes a checklist as YAML: merged with what it extends, or in a canonical form for comparing."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kdoctor.checklist.extends import KINDS
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.schema import SCHEMA
from kdoctor.commands.script import comment
from kdoctor.facts import canonical_name
from kdoctor.text.sanitize import escape

Item = TypeVar("Item")

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./*-]*")
_NOT_TEXT = frozenset({"y", "yes", "n", "no", "true", "false", "on", "off", "null", "nan", "inf"})


def resolved_text(checklist: Checklist) -> str:
    """The merged checklist in its order, with a comment on every value that overrides an inherited one."""
    return "".join(f"{line}\n" for line in _Writer(checklist, comments=True).lines())


def plain_text(checklist: Checklist) -> str:
    """The merged checklist sorted and without comments: equivalent checklists have the same text."""
    return "".join(f"{line}\n" for line in _Writer(checklist, comments=False).lines())


def scalar(value: Any) -> str:
    """A value as YAML on one line; strings are quoted where YAML might read them as something else."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT else _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {scalar(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, Iterable):
        return "[" + ", ".join(scalar(entry) for entry in value) + "]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value) if isinstance(value, bool | int) or value is None else str(value)


def _number(value: float) -> str:
    """A number with a dot: YAML 1.1 reads 1e-05 as a string."""
    mantissa, exponent, power = repr(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"


def _quoted(text: str) -> str:
    """A string in double quotes on one line, with unprintable characters escaped."""
    escaped = (
        f"\\{character}" if character in '"\\' else character if character.isprintable() else escape(ord(character))
        for character in text
    )
    return f'"{"".join(escaped)}"'


def _kinds_left_out(checklist: Checklist) -> dict[str, str]:
    """Reasons for kinds of scenarios. Checks and scenarios that were left out are not in the merged checklist."""
    return {kind: reason for kind, reason in checklist.without.items() if kind in KINDS}


class _Writer:
    """Writes a checklist in its order with comments on overridden values, or sorted and without comments."""

    def __init__(self, checklist: Checklist, *, comments: bool) -> None:
        self._checklist = checklist
        self._comments = comments

    def lines(self) -> Iterator[str]:
        """The whole document."""
        checklist = self._checklist
        if self._comments and checklist.extends:
            yield comment(f"# {checklist.name}, merged with {' and '.join(checklist.extends)}")
        yield f"schema: {SCHEMA}"
        yield f"name: {scalar(checklist.name)}"
        yield f"version: {checklist.version}"
        yield f"owner: {scalar(checklist.owner)}"
        for section, lines in (
            ("assumptions", self._assumptions()),
            ("checks", self._checks()),
            ("scenarios", self._scenarios()),
            ("without", self._pairs("without", _kinds_left_out(checklist))),
            ("waivers", self._waivers()),
            ("rollback", self._rollback()),
        ):
            written = list(lines)
            if written:
                yield from ("", f"{section}:", *written)
        yield from self._not_inherited()

    def _not_inherited(self) -> Iterator[str]:
        gone = [item for item in self._checklist.overrides if self._comments and item.new == "nothing"]
        if gone:
            yield from ("", "# Not inherited:")
        for item in gone:
            reason = self._checklist.without.get(item.what.partition(".")[2])
            yield "#   " + comment(
                f"{item.what} ({item.old}) of {item.inherited_from}" + (f": {reason}" if reason else "")
            )

    def _comment(self, name: str) -> str:
        """The comment on an entry, about itself or a value in it."""
        said = [
            f"{item.what.removeprefix(name).lstrip('.')} in {item.inherited_from}: {item.old}".lstrip()
            for item in self._checklist.overrides
            if self._comments and item.new != "nothing" and f"{item.what}.".startswith(f"{name}.")
        ]
        return f"  # {comment('; '.join(said))}" if said else ""

    def _ordered(self, items: Iterable[Item], key: Callable[[Item], Any]) -> list[Item]:
        return list(items) if self._comments else sorted(items, key=key)

    def _pairs(self, name: str, pairs: Mapping[str, str], indent: str = "  ") -> Iterator[str]:
        for key, value in self._ordered(pairs.items(), lambda pair: pair[0]):
            yield f"{indent}{scalar(key)}: {scalar(value)}{self._comment(f'{name}.{key}')}"

    def _assumptions(self) -> Iterator[str]:
        stated = self._checklist.assumptions
        texts = {"python": stated.python, "driver": stated.driver, "image": stated.image}
        yield from self._pairs_in_order("assumptions", texts)
        packages = stated.packages
        if not self._comments:
            packages = {canonical_name(key): value for key, value in packages.items()}
        for name, pairs in (
            ("framework", stated.framework),
            ("sdk", stated.sdk),
            ("packages", packages),
            ("libraries", stated.libraries),
            ("flags", stated.flags),
            ("environment", stated.environment),
        ):
            if pairs:
                yield f"  {name}:"
                yield from self._pairs(f"assumptions.{name}", pairs, indent="    ")
        gpus = stated.gpus
        if gpus:
            values = {"count": gpus.count, "at_least": gpus.at_least, "model": gpus.model}
            values = {key: value for key, value in values.items() if value is not None}
            yield f"  gpus: {scalar(values)}{self._comment('assumptions.gpus')}"

    def _pairs_in_order(self, section: str, values: Mapping[str, Any]) -> Iterator[str]:
        for name, value in values.items():
            if value:
                yield f"  {name}: {scalar(value)}{self._comment(f'{section}.{name}')}"

    def _checks(self) -> Iterator[str]:
        for entry in self._ordered(self._checklist.entries, lambda entry: entry.check.id):
            values: dict[str, Any] = {"id": entry.check.id, "severity": entry.severity.value}
            if entry.accept_unknown:
                values["accept_unknown"] = entry.accept_unknown
            if entry.parameters:
                values["parameters"] = dict(sorted(entry.parameters.items()))
            comment = self._comment(f"checks.{entry.check.id}")
            if entry.added_for and self._comments:
                comment = f"  # added: it judges {' and '.join(f'assumptions.{name}' for name in entry.added_for)}"
            yield f"  - {scalar(values)}{comment}"

    def _scenarios(self) -> Iterator[str]:
        for entry in self._ordered(self._checklist.scenarios, lambda entry: entry.scenario.id):
            yield f"  - id: {scalar(entry.scenario.id)}{self._comment(f'scenarios.{entry.scenario.id}')}"
            yield f"    kind: {scalar(entry.scenario.kind)}"
            yield f"    strategy: {scalar(entry.scenario.strategy)}"
            yield f"    replicas: {scalar(entry.replicas)}"
            yield f"    expect: {scalar(entry.expect)}"

    def _waivers(self) -> Iterator[str]:
        for waiver in self._ordered(self._checklist.waivers, lambda item: (item.check, item.subject, item.expires)):
            names = ("check", "subject", "reason", "owner", "expires")
            values = {name: getattr(waiver, name) for name in names}
            yield f"  - {scalar(values)}{self._comment(f'waivers.{waiver.check}')}"

    def _rollback(self) -> Iterator[str]:
        policy = self._checklist.rollback
        if policy is None:
            return
        values: dict[str, Any] = {"decides": policy.decides, "within": policy.within}
        for name in ("at_once", "fix_forward", "investigate"):
            values[name] = self._ordered(getattr(policy, name), str)
        yield from self._pairs_in_order("rollback", values)
