"""What was imported, and not understood."""

from dataclasses import dataclass
from typing import ClassVar

from kdoctor.facts.base import FactGroup
from kdoctor.text.lists import counted


@dataclass(frozen=True, kw_only=True)
class UnreadLine:
    """A line of imported output that kdoctor does not know."""

    file: str
    line: int
    """Number of the line in the file, from 1."""
    text: str
    """At most 200 characters of it."""


@dataclass(frozen=True, kw_only=True)
class ImportedLines(FactGroup):
    """The lines of imported output that were not understood. Without such lines, there is no group."""

    group: ClassVar[str] = "imported_lines"

    count: int
    """The number of all such lines, apart from those that ``Gpus`` lists."""
    lines: tuple[UnreadLine, ...]
    """The first ones."""

    def caveat(self) -> str:
        """``3 imported lines not understood``."""
        return f"{counted(self.count, 'imported line')} not understood"
