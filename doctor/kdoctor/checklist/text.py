"""Writes a checklist as YAML: merged with what it extends, or in a canonical form for comparing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kdoctor.checklist.resolve import Checklist, ChecklistEntry
from kdoctor.checklist.schema import SCHEMA
from kdoctor.facts import canonical_name

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./*-]*")
_NOT_TEXT = frozenset({"y", "yes", "n", "no", "true", "false", "on", "off", "null", "nan", "inf"})


def resolved_text(checklist: Checklist) -> str:
    """The merged checklist in its order, with a comment on every value that overrides an inherited one."""
    return "".join(f"{line}\n" for line in _lines(checklist, comments=True))


def plain_text(checklist: Checklist) -> str:
    """The merged checklist sorted and without comments: equivalent checklists have the same text."""
    return "".join(f"{line}\n" for line in _lines(checklist, comments=False))


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
        f"\\{character}" if character in '"\\' else character if character.isprintable() else _escape(ord(character))
        for character in text
    )
    return f'"{"".join(escaped)}"'


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - YAML's three escapes


def _lines(checklist: Checklist, *, comments: bool) -> Iterator[str]:
    if comments and checklist.extends:
        yield f"# {checklist.name}, merged with {' and '.join(checklist.extends)}"
    yield f"schema: {SCHEMA}"
    yield f"name: {checklist.name}"
    yield f"version: {checklist.version}"
    yield f"owner: {scalar(checklist.owner)}"
    remarks = _Remarks(checklist) if comments else None
    for section, lines in (
        ("assumptions", _assumptions(checklist, remarks, in_order=comments)),
        ("checks", _checks(checklist, remarks, in_order=comments)),
        ("scenarios", _scenarios(checklist, remarks, in_order=comments)),
        ("without", _pairs("without", checklist.without, remarks, in_order=comments)),
        ("waivers", _waivers(checklist, remarks, in_order=comments)),
        ("rollback", _rollback(checklist, remarks)),
    ):
        written = list(lines)
        if written:
            yield from ("", f"{section}:", *written)
    if remarks:
        yield from remarks.left_out()


class _Remarks:
    """Comments on overridden values."""

    def __init__(self, checklist: Checklist) -> None:
        self._by_name = {item.what: item for item in checklist.overrides}

    def on(self, *names: str) -> str:
        """The comment on an entry, about itself or a value in it."""
        said = [
            f"{name.removeprefix(names[0]).lstrip('.') or 'this'} was {item.old} in {item.inherited_from}"
            for name, item in self._by_name.items()
            if item.new != "nothing" and any(name == wanted or name.startswith(f"{wanted}.") for wanted in names)
        ]
        return f"  # {'; '.join(said)}" if said else ""

    def left_out(self) -> Iterator[str]:
        """What is no longer inherited."""
        gone = [item for item in self._by_name.values() if item.new == "nothing"]
        if gone:
            yield from ("", "# Not inherited:")
        for item in gone:
            yield f"#   {item.what} ({item.old}) of {item.inherited_from}"


def _remark(remarks: _Remarks | None, *names: str) -> str:
    return remarks.on(*names) if remarks else ""


def _pairs(
    name: str, pairs: Mapping[str, str], remarks: _Remarks | None, *, in_order: bool, indent: str = "  "
) -> Iterator[str]:
    for key, value in pairs.items() if in_order else sorted(pairs.items()):
        yield f"{indent}{scalar(key)}: {scalar(value)}{_remark(remarks, f'{name}.{key}')}"


def _assumptions(checklist: Checklist, remarks: _Remarks | None, *, in_order: bool) -> Iterator[str]:
    stated = checklist.assumptions
    if stated.python is not None:
        yield f"  python: {scalar(stated.python)}{_remark(remarks, 'assumptions.python')}"
    for name, text in (("driver", stated.driver), ("image", stated.image)):
        if text is not None:
            yield f"  {name}: {scalar(text)}{_remark(remarks, f'assumptions.{name}')}"
    packages = stated.packages if in_order else {canonical_name(key): value for key, value in stated.packages.items()}
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
            yield from _pairs(f"assumptions.{name}", pairs, remarks, in_order=in_order, indent="    ")
    gpus = stated.gpus
    if gpus:
        values = {"count": gpus.count, "at_least": gpus.at_least, "model": gpus.model}
        yield f"  gpus: {scalar({key: value for key, value in values.items() if value is not None})}" + _remark(
            remarks, "assumptions.gpus"
        )


def _checks(checklist: Checklist, remarks: _Remarks | None, *, in_order: bool) -> Iterator[str]:
    entries = checklist.entries if in_order else sorted(checklist.entries, key=lambda entry: entry.check.id)
    for entry in entries:
        yield f"  - {scalar(_check(entry))}{_remark(remarks, f'checks.{entry.check.id}')}"


def _check(entry: ChecklistEntry) -> dict[str, Any]:
    values: dict[str, Any] = {"id": entry.check.id, "severity": entry.severity.value}
    if entry.accept_unknown:
        values["accept_unknown"] = entry.accept_unknown
    if entry.parameters:
        values["parameters"] = dict(sorted(entry.parameters.items()))
    return values


def _scenarios(checklist: Checklist, remarks: _Remarks | None, *, in_order: bool) -> Iterator[str]:
    entries = checklist.scenarios if in_order else sorted(checklist.scenarios, key=lambda entry: entry.scenario.id)
    for entry in entries:
        values = {
            "id": entry.scenario.id,
            "kind": entry.scenario.kind,
            "strategy": entry.strategy,
            "replicas": entry.replicas,
            "expect": entry.expect,
        }
        first, *others = values.items()
        yield f"  - {first[0]}: {scalar(first[1])}{_remark(remarks, f'scenarios.{entry.scenario.id}')}"
        yield from (f"    {name}: {scalar(value)}" for name, value in others)


def _waivers(checklist: Checklist, remarks: _Remarks | None, *, in_order: bool) -> Iterator[str]:
    waivers = (
        checklist.waivers
        if in_order
        else sorted(checklist.waivers, key=lambda item: (item.check, item.subject, item.expires))
    )
    for waiver in waivers:
        values = {
            "check": waiver.check,
            "subject": waiver.subject,
            "reason": waiver.reason,
            "owner": waiver.owner,
            "expires": waiver.expires,
        }
        yield f"  - {scalar(values)}{_remark(remarks, f'waivers.{waiver.check}')}"


def _rollback(checklist: Checklist, remarks: _Remarks | None) -> Iterator[str]:
    policy = checklist.rollback
    if policy is None:
        return
    yield f"  decides: {scalar(policy.decides)}{_remark(remarks, 'rollback.decides')}"
    if policy.within:
        yield f"  within: {scalar(policy.within)}{_remark(remarks, 'rollback.within')}"
    lists = (("at_once", policy.at_once), ("fix_forward", policy.fix_forward), ("investigate", policy.investigate))
    for name, patterns in lists:
        if patterns:
            shown = patterns if remarks else sorted(patterns)
            yield f"  {name}: {scalar(shown)}{_remark(remarks, f'rollback.{name}')}"
