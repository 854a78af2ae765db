"""Two checklists, with their locks, into the changes between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kdoctor.check import Parameter
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, RollbackPolicy, ScenarioEntry
from kdoctor.diff.assumptions import compare_assumptions
from kdoctor.diff.changes import change, differing
from kdoctor.diff.looseness import compare_numbers, direction_of
from kdoctor.diff.model import KINDS, Change, Comparison, Kind
from kdoctor.diff.sources import Side
from kdoctor.engine.report import Waiver
from kdoctor.lock.document import Lock

_NOT_AN_EXPECTATION = ("lock.", "version")


def compare(old: Side, new: Side) -> Comparison:
    """Everything that is otherwise. Order, comments and how it is put together of several files are not."""
    changes = _in_order([
        *_heads(old.checklist, new.checklist),
        *compare_assumptions(old.checklist.assumptions, new.checklist.assumptions),
        *_checks(old.checklist, new.checklist),
        *_scenarios(old.checklist, new.checklist),
        *_without(old.checklist, new.checklist),
        *_waivers(old.checklist, new.checklist),
        *_rollback(old.checklist.rollback, new.checklist.rollback),
        *_locks(old.lock, new.lock),
    ])  # fmt: skip
    return Comparison(old=old.shown, new=new.shown, changes=tuple(changes), notes=tuple(_notes(old, new, changes)))


def all_new(new: Side, revision: str) -> Comparison:
    """A checklist that the revision has not: all that it asks for came."""
    title = new.checklist.title
    change = Change(
        kind="tightened",
        where="checklist",
        old=None,
        new=f"{title.name} version {title.version}",
        why=f"{new.shown} is not in {revision}: the whole checklist is new",
    )
    return Comparison(old=revision, new=new.shown, changes=(change,))


def compare_locks(old: Lock | None, new: Lock | None, shown: str) -> Comparison:
    """What is otherwise between two locks alone."""
    return Comparison(old=shown, new=shown, changes=tuple(_in_order(_locks(old, new))))


def _in_order(changes: Iterable[Change]) -> list[Change]:
    """The gravest first, then by place."""
    return sorted(changes, key=lambda item: (KINDS.index(item.kind), item.where, item.old or "", item.new or ""))


def _heads(old: Checklist, new: Checklist) -> Iterator[Change]:
    yield from differing("moved", "name", old.name, new.name, "it is another checklist")
    yield from differing("cosmetic", "version", old.version, new.version, "the version was raised")
    yield from differing("moved", "owner", old.owner, new.owner, "somebody else owns it")


def _checks(old: Checklist, new: Checklist) -> Iterator[Change]:
    before, after = ({entry.check.id: entry for entry in side.entries} for side in (old, new))
    for check_id in sorted({*before, *after}):
        where = f"checks.{check_id}"
        if check_id not in after:
            severity = before[check_id].severity.value
            yield change("loosened", where, severity, None, "the check was removed")
        elif check_id not in before:
            yield change("tightened", where, None, after[check_id].severity.value, "a check was added")
        else:
            yield from _entry(where, before[check_id], after[check_id])


def _entry(where: str, old: ChecklistEntry, new: ChecklistEntry) -> Iterator[Change]:
    if new.severity is not old.severity:
        kind: Kind = "loosened" if new.severity.rank < old.severity.rank else "tightened"
        why = "the severity was lowered" if kind == "loosened" else "the severity was raised"
        yield change(kind, f"{where}.severity", old.severity.value, new.severity.value, why)
    yield from _permission(f"{where}.accept_unknown", old.accept_unknown, new.accept_unknown, "an unknown is accepted")
    for name, parameter in old.check.parameters.items():
        values = (entry.parameters.get(name, parameter.default) for entry in (old, new))
        yield from _parameter(f"{where}.parameters.{name}", parameter, *values)


def _permission(where: str, old: str | None, new: str | None, what: str) -> Iterator[Change]:
    """Something that is let through, with its reason."""
    if (old is None) != (new is None):
        added = old is None
        yield change("loosened" if added else "tightened", where, old, new, what if added else f"{what} no longer")
    elif old != new:
        yield change("cosmetic", where, old, new, "the reason is worded otherwise")


def _parameter(where: str, parameter: Parameter, old: Any, new: Any) -> Iterator[Change]:
    if old == new:
        return
    looser = direction_of(parameter.name)
    kind = compare_numbers(old, new, looser) if looser else "moved"
    why = {"loosened": "the tolerance was widened", "tightened": "the tolerance was narrowed"}
    yield change(kind, where, old, new, why.get(kind, "the parameter was changed: which way is for you to say"))


def _scenarios(old: Checklist, new: Checklist) -> Iterator[Change]:
    before, after = ({entry.scenario.id: entry for entry in side.scenarios} for side in (old, new))
    for scenario_id in sorted({*before, *after}):
        where = f"scenarios.{scenario_id}"
        if scenario_id not in after:
            yield change("loosened", where, before[scenario_id].scenario.kind, None, "the training was removed")
        elif scenario_id not in before:
            yield change("tightened", where, None, after[scenario_id].scenario.kind, "a training was added")
        else:
            yield from _scenario(where, before[scenario_id], after[scenario_id])


def _scenario(where: str, old: ScenarioEntry, new: ScenarioEntry) -> Iterator[Change]:
    yield from differing("moved", f"{where}.strategy", old.strategy, new.strategy, "another strategy is trained with")
    yield from differing("cosmetic", f"{where}.expect", old.expect, new.expect, "the outcome is worded otherwise")
    if old.replicas == new.replicas:
        return
    kind: Kind = "moved"
    if old.replicas == "gpus":
        kind, why = "loosened", "it trains on the CPU instead of on every visible GPU"
    elif new.replicas == "gpus":
        kind, why = "tightened", "it trains on every visible GPU instead of on the CPU"
    else:
        fewer = int(new.replicas) < int(old.replicas)
        kind, why = ("loosened", "fewer replicas are tried") if fewer else ("tightened", "more replicas are tried")
    yield change(kind, f"{where}.replicas", old.replicas, new.replicas, why)


def _without(old: Checklist, new: Checklist) -> Iterator[Change]:
    """Reasons to do without; what is left out shows where it was listed."""
    for key in sorted({*old.without, *new.without}):
        before, after = old.without.get(key), new.without.get(key)
        if before is not None and after is not None:
            yield from differing("cosmetic", f"without.{key}", before, after, "the reason is worded otherwise")
        elif after is not None:
            yield change("loosened", f"without.{key}", before, after, "the checklist does without it")
        else:
            yield change("tightened", f"without.{key}", before, after, "the checklist does without it no longer")


def _waivers(old: Checklist, new: Checklist) -> Iterator[Change]:
    before, after = (_latest(side.waivers) for side in (old, new))
    for key in sorted({*before, *after}):
        where = f"waivers.{key[0]} ({key[1]})"
        one, two = before.get(key), after.get(key)
        if one is None or two is None:
            if one is None:
                yield change("loosened", where, None, two.expires if two else None, "a waiver was added")
            else:
                yield change("tightened", where, one.expires, None, "a waiver was removed")
            continue
        if one.expires != two.expires:
            longer = two.expires > one.expires
            why = "the waiver was extended" if longer else "the waiver was shortened"
            kind: Kind = "loosened" if longer else "tightened"
            yield change(kind, f"{where}.expires", one.expires, two.expires, why)
        yield from differing("moved", f"{where}.owner", one.owner, two.owner, "somebody else answers for it")
        yield from differing("cosmetic", f"{where}.reason", one.reason, two.reason, "the reason is worded otherwise")


def _latest(waivers: Iterable[Waiver]) -> dict[tuple[str, str], Waiver]:
    """By check and subject; of several the one that holds longest, as the judge has it."""
    found: dict[tuple[str, str], Waiver] = {}
    for waiver in waivers:
        key = (waiver.check, waiver.subject)
        if key not in found or waiver.expires > found[key].expires:
            found[key] = waiver
    return found


_COURSES = ("investigate", "fix_forward", "at_once")
"""What is decided about a failure, the mildest first."""


def _rollback(old: RollbackPolicy | None, new: RollbackPolicy | None) -> Iterator[Change]:
    if old is None or new is None:
        if old is not None:
            yield change("loosened", "rollback", old.decides, None, "nothing is decided in advance any more")
        elif new is not None:
            yield change("tightened", "rollback", None, new.decides, "it is decided in advance what to do")
        return
    yield from differing("moved", "rollback.decides", old.decides, new.decides, "somebody else decides")
    yield from differing("moved", "rollback.within", old.within, new.within, "it is decided by another time")
    before, after = _courses(old), _courses(new)
    for pattern in sorted({*before, *after}):
        one, two = before.get(pattern), after.get(pattern)
        if one != two:
            milder = _gravity(two) < _gravity(one)
            course: Kind = "loosened" if milder else "tightened"
            why = "a failure is taken less gravely" if milder else "a failure is taken more gravely"
            if _gravity(one) == _gravity(two):
                course, why = "cosmetic", "what no criterion names is investigated anyhow"
            yield change(course, f"rollback.{pattern}", one, two, why)


def _courses(policy: RollbackPolicy) -> dict[str, str]:
    """Pattern to its course; the gravest if several lists have it."""
    return {pattern: course for course in _COURSES for pattern in getattr(policy, course)}


def _gravity(course: str | None) -> int:
    return _COURSES.index(course) if course else 0


def _locks(old: Lock | None, new: Lock | None) -> Iterator[Change]:
    if old is None or new is None:
        if old is not None:
            yield change("loosened", "lock", old.recorded, None, "the lock was removed")
        elif new is not None:
            yield change("tightened", "lock", None, new.recorded, "a lock was added")
        return
    for section in sorted({*old.facts, *new.facts}):
        before, after = old.facts.get(section, {}), new.facts.get(section, {})
        for name in sorted({*before, *after}):
            where = f"lock.{section}.{name}"
            yield from differing("moved", where, before.get(name), after.get(name), "a recorded fact changed")
    for name in sorted({*old.measured, *new.measured}):
        one, two = old.measured.get(name), new.measured.get(name)
        values = one.value if one else None, two.value if two else None
        yield from differing("moved", f"lock.{name}", values[0], values[1], "a measured outcome changed")
    accepted = [{item.check: item.reason for item in lock.accepted} for lock in (old, new)]
    for check in sorted({*accepted[0], *accepted[1]}):
        reasons = accepted[0].get(check), accepted[1].get(check)
        yield from _permission(f"lock.accepted.{check}", *reasons, "it was recorded though this was red")
    yield from differing("moved", "lock.kdoctor", old.kdoctor, new.kdoctor, "another kdoctor recorded it")
    yield from differing("cosmetic", "lock.recorded", old.recorded, new.recorded, "it was recorded anew")


def _notes(old: Side, new: Side, changes: Sequence[Change]) -> Iterator[str]:
    """Where the checklist and its lock do not go together."""
    expects = [item for item in changes if not item.where.startswith(_NOT_AN_EXPECTATION) and item.where != "lock"]
    expects = [item for item in expects if item.kind != "cosmetic"]
    recorded = [item for item in changes if item.where.startswith("lock.") and item.kind == "moved"]
    if old.lock is not None and new.lock is not None:
        if recorded and not expects:
            yield "The lock changed, and no expectation did: was this change of the machine or the packages meant?"
        if expects and not recorded and new.lock.recorded == old.lock.recorded:
            yield "Expectations changed, and the lock did not: record it anew (kdoctor checklist record)."
    if new.lock is not None and new.expectations != new.lock.expectations:
        yield "The lock was recorded under other expectations than the checklist has now: record it anew."
    if expects and old.checklist.version == new.checklist.version:
        yield "Expectations changed, and the checklist's version did not."
