"""The lock's document: read strictly, written in one way only, and sealed by a digest."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from kdoctor.checklist.text import scalar
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.yamldoc import YamlSourceError, read_yaml

SCHEMA = "kdoctor/lock/v1"
"""The only version that this kdoctor knows."""

_HEAD = """\
# What the last green run of this checklist found, written by `kdoctor checklist record`.
# Not for editing by hand: the digest would no longer hold, and a lock is evidence. Record anew instead.
"""
_REQUIRED = ("schema", "checklist", "version", "expectations", "recorded", "kdoctor", "identifiers", "facts", "digest")
_OPTIONAL = ("accepted", "measured")


class LockError(UsageError):
    """A lock cannot be used. The message is for the user."""


class NewerLockError(LockError):
    """A newer kdoctor wrote it, so this one must not replace it."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A reviewed exception: a check that was not green when the lock was recorded."""

    check: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measured number, and the range within which it counts as unchanged."""

    value: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether another measurement is within the range."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Lock:
    """What a green run of a checklist found."""

    checklist: str
    """The checklist's name."""
    version: int
    """The checklist's version."""
    expectations: str
    """Digest of the checklist's plain text: which expectations the run met."""
    recorded: str
    """UTC, ISO 8601."""
    kdoctor: str
    """The version of kdoctor that recorded it."""
    identifiers: bool = False
    """Whether serial numbers and paths are recorded, too."""
    accepted: tuple[Accepted, ...] = ()
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Section (``packages``, ``driver``, ...) to name to value."""
    measured: Mapping[str, Measure] = field(default_factory=dict)
    """``smoke.baseline/mirrored/final-loss`` and the like."""


def text_of(lock: Lock) -> str:
    """The document: sorted, one fact a line; the same lock is the same text, and only ``recorded`` is of its time."""
    lines = [
        f"schema: {SCHEMA}",
        f"checklist: {scalar(lock.checklist)}",
        f"version: {lock.version}",
        f"expectations: {scalar(lock.expectations)}",
        f"recorded: {scalar(lock.recorded)}",
        f"kdoctor: {scalar(lock.kdoctor)}",
        f"identifiers: {scalar(lock.identifiers)}",
    ]
    if lock.accepted:
        lines.append("accepted:")
        lines += [
            f"  - {scalar({'check': item.check, 'reason': item.reason})}"
            for item in sorted(lock.accepted, key=lambda item: item.check)
        ]
    sections = {section: facts for section, facts in lock.facts.items() if facts}
    lines.append("facts:" if sections else "facts: {}")
    for section, facts in sorted(sections.items()):
        lines.append(f"  {scalar(section)}:")
        lines += [f"    {scalar(name)}: {scalar(value)}" for name, value in sorted(facts.items())]
    if lock.measured:
        lines.append("measured:")
        lines += [f"  {scalar(name)}: {scalar(_range(item))}" for name, item in sorted(lock.measured.items())]
    return _HEAD + "".join(f"{line}\n" for line in lines) + f"digest: {scalar(_digest(_as_data(lock)))}\n"


def loads(content: bytes, shown: str) -> Lock:
    """Read a lock; ``shown`` names it in messages.

    Raises:
        LockError: it is no lock, is of a newer schema, ends too early, or was changed since it was recorded.
    """

    def refuse(message: str) -> NoReturn:
        hint = "Take it back from git, or record it anew: kdoctor checklist record CHECKLIST"
        raise LockError(f"{shown}: {message}", hint=hint)

    try:
        source = read_yaml(content, "lock")
    except YamlSourceError as error:
        if b"\ndigest:" not in content and b"\n<<<<<<<" not in content:
            refuse("the file ends too early ('digest' is missing), or was changed by hand")
        place = f"line {error.problem.line}: " if error.problem.line else ""
        refuse(f"{place}{error.problem.message}")
    if source.problems:
        first = min(source.problems)
        refuse(f"line {first.line}: {first.message}")
    data = source.data
    _refuse_schema(data, shown, refuse)
    missing = [key for key in _REQUIRED if key not in data]
    if missing == ["digest"]:
        refuse("'digest' is missing: the file ends too early, or was changed by hand")
    if missing:
        refuse(f"{', '.join(map(repr, missing))} is missing: the file ends too early, or was changed by hand")
    unknown = [key for key in data if key not in (*_REQUIRED, *_OPTIONAL)]
    if unknown:
        refuse(f"unknown key {unknown[0]!r}{did_you_mean(unknown[0], (*_REQUIRED, *_OPTIONAL))}")
    try:
        lock = _lock(data)
    except _WrongShapeError as error:
        refuse(str(error))
    if data["digest"] != _digest(_as_data(lock)):
        refuse("it was changed since it was recorded (its digest does not hold), so it is no evidence")
    return lock


class _WrongShapeError(Exception):
    pass


def _refuse_schema(data: Any, shown: str, refuse: Any) -> None:
    stated = data.get("schema") if isinstance(data, dict) else None
    if stated == SCHEMA:
        return
    if stated is None:
        refuse(f"this is no lock: 'schema: {SCHEMA}' is missing")
    if re.fullmatch(r"kdoctor/lock/v\d+", str(stated)):
        raise NewerLockError(
            f"{shown}: written by a newer kdoctor (schema {stated}, this one reads {SCHEMA})",
            hint="Upgrade keras-doctor; kdoctor check --no-lock does without the lock",
        )
    refuse(f"this is no lock: its schema is {stated!r}, not {SCHEMA!r}")


def _lock(data: Mapping[str, Any]) -> Lock:
    return Lock(
        checklist=_of(data, "checklist", str),
        version=_of(data, "version", int),
        expectations=_of(data, "expectations", str),
        recorded=_of(data, "recorded", str),
        kdoctor=_of(data, "kdoctor", str),
        identifiers=_of(data, "identifiers", bool),
        accepted=tuple(_accepted(entry) for entry in _of(data, "accepted", list, [])),
        facts={name: _texts(name, facts) for name, facts in _of(data, "facts", dict).items()},
        measured={name: _measure(name, entry) for name, entry in _of(data, "measured", dict, {}).items()},
    )


def _of(data: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
    value = data.get(key, default)
    if type(value) is not kind:
        raise _WrongShapeError(f"{key!r} is {value!r:.60}, which no lock has")
    return value


def _accepted(entry: Any) -> Accepted:
    if not isinstance(entry, dict) or set(entry) != {"check", "reason"}:
        raise _WrongShapeError("an entry of 'accepted' has not just a check and a reason")
    return Accepted(check=_of(entry, "check", str), reason=_of(entry, "reason", str))


def _texts(section: str, facts: Any) -> dict[str, str]:
    if not isinstance(facts, dict) or not all(isinstance(value, str) for value in facts.values()):
        raise _WrongShapeError(f"facts of {section!r} are not all text")
    return facts


def _measure(name: str, entry: Any) -> Measure:
    if not isinstance(entry, dict) or set(entry) != {"value", "from", "to"}:
        raise _WrongShapeError(f"the measure {name!r} has not just value, from and to")
    numbers = [entry[key] for key in ("value", "from", "to")]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        raise _WrongShapeError(f"the measure {name!r} holds what is no number")
    if not all(math.isfinite(number) for number in numbers):
        raise _WrongShapeError(f"the measure {name!r} is not finite")
    return Measure(value=float(numbers[0]), low=float(numbers[1]), high=float(numbers[2]))


def _range(item: Measure) -> dict[str, float]:
    return {"value": item.value, "from": item.low, "to": item.high}


def _as_data(lock: Lock) -> dict[str, Any]:
    """Everything that the digest seals: all but the date, and the digest itself."""
    return {
        "schema": SCHEMA,
        "checklist": lock.checklist,
        "version": lock.version,
        "expectations": lock.expectations,
        "kdoctor": lock.kdoctor,
        "identifiers": lock.identifiers,
        "accepted": sorted([item.check, item.reason] for item in lock.accepted),
        "facts": {section: dict(facts) for section, facts in lock.facts.items() if facts},
        "measured": {name: _range(item) for name, item in lock.measured.items()},
    }


def _digest(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
