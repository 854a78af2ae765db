"""Changes of single values."""

from collections.abc import Iterator
from typing import Any

from kdoctor.checklist.text import scalar
from kdoctor.diff.model import Change, Kind


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else scalar(value)


def change(kind: Kind, where: str, old: Any, new: Any, why: str) -> Change:
    """A change, with its values as text."""
    return Change(kind=kind, where=where, old=_text(old), new=_text(new), why=why)


def differing(kind: Kind, where: str, old: Any, new: Any, why: str) -> Iterator[Change]:
    """The change, if the values differ."""
    if old != new:
        yield change(kind, where, old, new, why)


def expectation(where: str, old: Any, new: Any) -> Iterator[Change]:
    """A change of a value that is expected exactly, or not at all."""
    if old == new:
        return
    if new is None:
        yield change("loosened", where, old, new, "an expectation was removed")
    elif old is None:
        yield change("tightened", where, old, new, "an expectation was added")
    else:
        yield change("moved", where, old, new, "a different value is expected")
