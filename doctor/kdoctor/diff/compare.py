"""Compares two checklists with their locks. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kdoctor.check import Parameter
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry
from kdoctor.checklist.schema import RollbackPart
from kdoctor.commands.shell import quoted
from kdoctor.diff.assumptions import compare_assumptions
from kdoctor.diff.changes import change, differing
from kdoctor.diff.looseness import compare_numbers, direction_of
from kdoctor.diff.model import KINDS, Change, Comparison, Kind
from kdoctor.diff.sources import Side
from kdoctor.engine.report import Waiver
from kdoctor.lock.document import Lock

Item = TypeVar("Item")

LOCK_CHANGED_ALONE = "The lock changed, but no expectation did. Is the change of the machine or the packages intended?"
_RECORD = "Record it again, in the job's environment: kdoctor checklist record {}"
LOCK_UNCHANGED = f"Expectations changed, but the lock did not. {_RECORD}"
LOCK_OUTDATED = f"The lock was recorded with different expectations. {_RECORD}"
VERSION_UNCHANGED = "Expectations changed, but the version of the checklist did not."

_NOT_AN_EXPECTATION = ("lock.", "version")


def compare(old: Side, new: Side) -> Comparison:
    """All differences. Order, comments and the split into files do not count."""
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
    """The comparison for a checklist that the revision does not have."""
    title = new.checklist.title
    change = Change(
        kind="tightened",
        where="checklist",
        old=None,
        new=f"{title.name} version {title.version}",
        why=f"{new.shown} is not in {revision}: the whole checklist is new",
    )
    return Comparison(old=revision, new=new.shown, changes=(change,))


def all_shipped(new: Side, revision: str) -> Comparison:
    """The comparison for a checklist that is not in the repository at all."""
    note = f"{new.shown} is shipped with kdoctor and not in this repository, so there is nothing to compare."
    return Comparison(old=f"{new.shown} at {revision}", new=new.shown, changes=(), notes=(note,))


def compare_locks(old: Lock | None, new: Lock | None, old_shown: str, new_shown: str) -> Comparison:
    """The differences between two locks alone."""
    return Comparison(old=old_shown, new=new_shown, changes=tuple(_in_order(_locks(old, new))))


def _in_order(changes: Iterable[Change]) -> list[Change]:
    """Most severe first, then by place."""
    return sorted(changes, key=lambda item: (KINDS.index(item.kind), item.where))


def _heads(old: Checklist, new: Checklist) -> Iterator[Change]:
    yield from differing("moved", "name", old.name, new.name, "it is a different checklist")
    yield from differing("cosmetic", "version", old.version, new.version, "the version changed")
    yield from differing("moved", "owner", old.owner, new.owner, "the owner changed")


def _each(
    before: Mapping[str, Item],
    after: Mapping[str, Item],
    noun: str,
    shown: Callable[[Item], Any],
    compare_one: Callable[[str, Item, Item], Iterator[Change]],
) -> Iterator[Change]:
    """Entries that were removed, which loosens; that were added, which tightens; and changes in the others."""
    for where in sorted({*before, *after}):
        if where not in after:
            yield change("loosened", where, shown(before[where]), None, f"the {noun} was removed")
        elif where not in before:
            yield change("tightened", where, None, shown(after[where]), f"the {noun} was added")
        else:
            yield from compare_one(where, before[where], after[where])


def _checks(old: Checklist, new: Checklist) -> Iterator[Change]:
    before, after = ({f"checks.{entry.check.id}": entry for entry in side.entries} for side in (old, new))
    return _each(before, after, "check", lambda entry: entry.severity.value, _entry)


def _entry(where: str, old: ChecklistEntry, new: ChecklistEntry) -> Iterator[Change]:
    if new.severity is not old.severity:
        kind: Kind = "loosened" if new.severity.rank < old.severity.rank else "tightened"
        why = "the severity was lowered" if kind == "loosened" else "the severity was raised"
        yield change(kind, f"{where}.severity", old.severity.value, new.severity.value, why)
    yield from _permission(
        f"{where}.accept_unknown", old.accept_unknown, new.accept_unknown, "unknown results are accepted"
    )
    for name, parameter in old.check.parameters.items():
        values = (entry.parameters.get(name, parameter.default) for entry in (old, new))
        yield from _parameter(f"{where}.parameters.{name}", parameter, *values)


def _permission(where: str, old: str | None, new: str | None, what: str) -> Iterator[Change]:
    """Something that is accepted for a reason."""
    if (old is None) != (new is None):
        added = old is None
        yield change("loosened" if added else "tightened", where, old, new, what if added else f"no longer: {what}")
    elif old != new:
        yield change("cosmetic", where, old, new, "the reason was reworded")


def _parameter(where: str, parameter: Parameter, old: Any, new: Any) -> Iterator[Change]:
    if old == new:
        return
    looser = direction_of(parameter.name)
    if looser is None:
        yield change("loosened", where, old, new, "the parameter changed, which may be looser")
        return
    kind = compare_numbers(old, new, looser)
    why = {"loosened": "the tolerance was widened", "tightened": "the tolerance was narrowed"}
    yield change(kind, where, old, new, why.get(kind, "other values are accepted"))


def _scenarios(old: Checklist, new: Checklist) -> Iterator[Change]:
    before, after = ({f"scenarios.{entry.scenario.id}": entry for entry in side.scenarios} for side in (old, new))
    return _each(before, after, "training", lambda entry: entry.scenario.kind, _scenario)


def _scenario(where: str, old: ScenarioEntry, new: ScenarioEntry) -> Iterator[Change]:
    yield from differing("cosmetic", f"{where}.expect", old.expect, new.expect, "the expected outcome was reworded")
    if old.replicas == new.replicas:
        return
    kind: Kind = "loosened"
    if old.replicas == "gpus":
        why = "it trains on the CPU instead of on every visible GPU"
    elif new.replicas == "gpus":
        kind, why = "tightened", "it trains on every visible GPU instead of on the CPU"
    elif new.replicas < old.replicas:
        why = "fewer replicas train"
    else:
        kind, why = "tightened", "more replicas train"
    yield change(kind, f"{where}.replicas", old.replicas, new.replicas, why)


def _without(old: Checklist, new: Checklist) -> Iterator[Change]:
    """Reasons for leaving something out; the entries that are left out are reported separately."""
    for key in sorted({*old.without, *new.without}):
        where, before, after = f"without.{key}", old.without.get(key), new.without.get(key)
        is_entry = any(key == entry.check.id for side in (old, new) for entry in side.entries)
        reason = differing("cosmetic", where, before, after, "the reason of the change above")
        yield from reason if is_entry else _permission(where, before, after, "it is left out")


def _waivers(old: Checklist, new: Checklist) -> Iterator[Change]:
    before, after = (_latest(side.waivers) for side in (old, new))
    for key in sorted({*before, *after}):
        where, one, two = f"waivers.{key[0]} ({key[1]})", before.get(key), after.get(key)
        if one and two:
            kind: Kind = "loosened" if two.expires > one.expires else "tightened"
            why = "the waiver was extended" if kind == "loosened" else "the waiver was shortened"
            yield from differing(kind, f"{where}.expires", one.expires, two.expires, why)
            yield from differing("moved", f"{where}.owner", one.owner, two.owner, "the owner changed")
            yield from differing("cosmetic", f"{where}.reason", one.reason, two.reason, "the reason was reworded")
        elif two:
            yield change("loosened", where, None, two.expires, "the waiver was added")
        elif one:
            yield change("tightened", where, one.expires, None, "the waiver was removed")


def _latest(waivers: Iterable[Waiver]) -> dict[tuple[str, str], Waiver]:
    """By check and subject; of several the one that expires last, which the judge uses."""
    found: dict[tuple[str, str], Waiver] = {}
    for waiver in waivers:
        key = (waiver.check, waiver.subject)
        if key not in found or waiver.expires > found[key].expires:
            found[key] = waiver
    return found


_COURSES = ("investigate", "fix_forward", "at_once")
"""Courses of action, mildest first."""


def _rollback(old: RollbackPart | None, new: RollbackPart | None) -> Iterator[Change]:
    if old is None or new is None:
        if old is not None:
            yield change("loosened", "rollback", old.decides, None, "the rollback policy was removed")
        elif new is not None:
            yield change("tightened", "rollback", None, new.decides, "a rollback policy was added")
        return
    yield from differing("moved", "rollback.decides", old.decides, new.decides, "the decision owner changed")
    yield from differing("moved", "rollback.within", old.within, new.within, "the deadline changed")
    before, after = _courses(old), _courses(new)
    for pattern in sorted({*before, *after}):
        one, two = before.get(pattern), after.get(pattern)
        kind: Kind = "loosened" if _severity(two) < _severity(one) else "tightened"
        why = f"the failure is treated as {'less' if kind == 'loosened' else 'more'} severe"
        if _severity(one) == _severity(two):
            kind, why = "cosmetic", "failures without a rule are investigated anyway"
        yield from differing(kind, f"rollback.{pattern}", one, two, why)


def _courses(policy: RollbackPart) -> dict[str, str]:
    """Pattern to its course; the most severe if several lists have it."""
    return {pattern: course for course in _COURSES for pattern in getattr(policy, course)}


def _severity(course: str | None) -> int:
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
        yield from _permission(f"lock.accepted.{check}", *reasons, "the lock was recorded although this check failed")
    yield from differing("moved", "lock.kdoctor", old.kdoctor, new.kdoctor, "a different kdoctor recorded it")
    yield from differing("cosmetic", "lock.recorded", old.recorded, new.recorded, "it was recorded again")


def _notes(old: Side, new: Side, changes: Sequence[Change]) -> Iterator[str]:
    """Inconsistencies between the checklist and its lock."""
    expects = [item for item in changes if not item.where.startswith(_NOT_AN_EXPECTATION) and item.where != "lock"]
    expects = [item for item in expects if item.kind != "cosmetic"]
    recorded = [item for item in changes if item.where.startswith("lock.") and item.kind == "moved"]
    both = old.lock is not None and new.lock is not None
    if both and recorded and not expects:
        yield LOCK_CHANGED_ALONE
    same_date = old.lock is not None and new.lock is not None and new.lock.recorded == old.lock.recorded
    unchanged = same_date and expects and not recorded
    if unchanged or (new.lock is not None and new.expectations != new.lock.expectations):
        yield (LOCK_UNCHANGED if unchanged else LOCK_OUTDATED).format(quoted(new.checklist.asked_as))
    if expects and old.checklist.name == new.checklist.name and old.checklist.version == new.checklist.version:
        yield VERSION_UNCHANGED
