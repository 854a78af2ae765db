"""Compares the assumptions of two checklists."""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

from kdoctor.diff.changes import change, expectation
from kdoctor.diff.looseness import compare_specifiers
from kdoctor.diff.model import Change, Kind
from kdoctor.facts import canonical_name
from kdoctor.model import Assumptions, GpuAssumption


def compare_assumptions(before: Assumptions, after: Assumptions) -> Iterator[Change]:
    """All differences."""
    yield from _specifier("assumptions.python", before.python, after.python)
    yield from _specifier("assumptions.driver", before.driver, after.driver)
    yield from _each("packages", _by_canonical_name(before.packages), _by_canonical_name(after.packages), _specifier)
    yield from _each("framework", before.framework, after.framework, _part_of_framework)
    yield from _each("sdk", before.sdk, after.sdk, _specifier)
    yield from _each("libraries", before.libraries, after.libraries, _specifier)
    yield from _each("flags", before.flags, after.flags, expectation)
    yield from _each("environment", before.environment, after.environment, expectation)
    yield from _pattern("assumptions.image", before.image, after.image)
    yield from _gpus(before.gpus or GpuAssumption(), after.gpus or GpuAssumption())


Compare = Callable[[str, "str | None", "str | None"], Iterator[Change]]


def _each(section: str, old: Mapping[str, str], new: Mapping[str, str], compare_one: Compare) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        yield from compare_one(f"assumptions.{section}.{name}", old.get(name), new.get(name))


def _part_of_framework(where: str, old: str | None, new: str | None) -> Iterator[Change]:
    is_version = where.endswith((".tensorflow", ".keras"))
    yield from _specifier(where, old, new) if is_version else expectation(where, old, new)


def _by_canonical_name(packages: Mapping[str, str]) -> dict[str, str]:
    return {canonical_name(name): specifier for name, specifier in packages.items()}


def _pattern(where: str, old: str | None, new: str | None) -> Iterator[Change]:
    """A pattern of names, which is looser if it includes the other one."""
    if old is None or new is None or old == new:
        yield from expectation(where, old, new)
    elif _includes(new, old) and _includes(old, new):
        yield change("cosmetic", where, old, new, "the same names, written differently")
    elif _includes(new, old):
        yield change("loosened", where, old, new, "more names match")
    elif _includes(old, new):
        yield change("tightened", where, old, new, "fewer names match")
    elif {*"?["} & {*old, *new}:
        yield change("loosened", where, old, new, "more names may match")
    else:
        yield from expectation(where, old, new)


def _includes(wide: str, narrow: str) -> bool:
    """Whether the wide pattern matches everything that the narrow one does; decided only for ``*`` wildcards."""
    return not {*"?["} & {*wide} and fnmatchcase(narrow, wide)


def _specifier(where: str, old: str | None, new: str | None) -> Iterator[Change]:
    if old is None or new is None or old == new:
        yield from expectation(where, old, new)
        return
    kind = compare_specifiers(old, new)
    why = {
        "loosened": "more versions are allowed",
        "tightened": "fewer versions are allowed",
        "moved": "different versions are expected",
        "cosmetic": "the same versions, written differently",
    }[kind]
    yield change(kind, where, old, new, why)


def _gpus(old: GpuAssumption, new: GpuAssumption) -> Iterator[Change]:
    yield from _pattern("assumptions.gpus.model", old.model, new.model)
    where, before, after = "assumptions.gpus.count", _range(old), _range(new)
    if before == after:
        return
    if before is None or after is None:
        yield from expectation(where, _range_text(before), _range_text(after))
        return
    kind: Kind = "moved"
    if 0 not in (before[1], after[1]):  # a count of 0 skips every GPU check
        if after[0] <= before[0] and _at_least(after[1], before[1]):
            kind = "loosened"
        elif before[0] <= after[0] and _at_least(before[1], after[1]):
            kind = "tightened"
    elif after[1] == 0:
        kind = "loosened"
    else:
        kind = "tightened"
    why = {"loosened": "fewer GPUs are enough, or none is checked", "tightened": "more GPUs are expected"}
    yield change(kind, where, _range_text(before), _range_text(after), why.get(kind, "a different number is expected"))


Range = tuple[int, "int | None"]


def _range(gpus: GpuAssumption) -> Range | None:
    """Minimum and maximum number of GPUs; None for no maximum."""
    if gpus.count is not None:
        return gpus.count, gpus.count
    return (gpus.at_least, None) if gpus.at_least is not None else None


def _at_least(one: int | None, other: int | None) -> bool:
    """Whether a maximum is not lower than another."""
    return one is None or (other is not None and one >= other)


def _range_text(found: Range | None) -> str | None:
    if found is None:
        return None
    return f"exactly {found[0]}" if found[1] is not None else f"at least {found[0]}"
