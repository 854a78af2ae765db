"""Changes between checklists, and what they mean; also the document of ``checklist diff --format json``."""

from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.records import record

Kind = Literal["loosened", "tightened", "moved", "cosmetic"]
KINDS: tuple[Kind, ...] = ("loosened", "tightened", "moved", "cosmetic")
"""What a change means, most severe first. Loosened: something that failed may pass now. Tightened: something that
passed may fail now. Moved: a different expectation or recorded fact. Cosmetic: text that no run depends on."""


@record
class Change:
    """One difference."""

    kind: Kind
    where: str
    """``checks.gpu.free.severity``, ``lock.packages.keras``, ..."""
    old: str | None
    """None if it was added."""
    new: str | None
    """None if it was removed."""
    why: str
    """What it means."""


@record
class Comparison:
    """All differences between two checklists with their locks."""

    old: str
    """The older checklist, as it was named."""
    new: str
    changes: tuple[Change, ...] = ()
    """By kind, most severe first; then by place."""
    notes: tuple[str, ...] = ()
    """Questions for a reviewer: a lock that changed alone, or did not change."""

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The changes of that kind."""
        return tuple(change for change in self.changes if change.kind == kind)


class DiffCounts(Part):
    """The number of changes of each kind."""

    loosened: int
    tightened: int
    moved: int
    cosmetic: int


class DiffChange(Part):
    """One difference."""

    kind: Kind
    where: Annotated[str, Field(description="Such as checks.gpu.free.severity or lock.packages.keras.")]
    old: Annotated[str | None, Field(description="None if it was added.")]
    new: Annotated[str | None, Field(description="None if it was removed.")]
    why: str


class ChecklistDiff(Document):
    """What a change of a checklist means."""

    schema_: Annotated[Literal["kdoctor/checklist-diff/v1"], Field(alias="schema")]
    old: str
    new: str
    counts: DiffCounts
    changes: Annotated[list[DiffChange], Field(description="Most severe kind first.")]
    notes: Annotated[list[str], Field(description="Questions for a reviewer.")]
