"""Changes, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["loosened", "tightened", "moved", "cosmetic"]
KINDS: tuple[Kind, ...] = ("loosened", "tightened", "moved", "cosmetic")
"""What a change means, the gravest first. Loosened: something that failed before may pass now. Tightened: the other way
round. Moved: another expectation or another recorded fact. Cosmetic: words that no run depends on."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that is otherwise."""

    kind: Kind
    where: str
    """``checks.gpu.free.severity``, ``lock.packages.keras``, ..."""
    old: str | None
    """None where it was not there."""
    new: str | None
    """None where it is not there any more."""
    why: str
    """What it means, in a few words."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is otherwise between two checklists with their locks."""

    old: str
    """The older one's name, as asked for."""
    new: str
    changes: tuple[Change, ...] = ()
    """By kind, the gravest first; then by place."""
    notes: tuple[str, ...] = ()
    """What a reviewer should ask about: a lock that changed alone, or did not change."""

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The changes of that kind."""
        return tuple(change for change in self.changes if change.kind == kind)
