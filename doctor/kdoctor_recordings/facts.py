"""Facts that only the output of other tools has: what they concluded, and the lines that were not read."""

from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.records import record
from kdoctor.text.lists import counted

DiagnosticStatus = Literal["pass", "warn", "fail", "skip", "unknown"]


@record
class Diagnostic:
    """The result of one test for one subject."""

    tool: str
    """``dcgmi diag``, ``fabric manager``, ``nvidia-smi nvlink -e``."""
    test: str
    """As the tool names it."""
    subject: str
    """``GPU 3``, ``NVSwitch 0000:86:00.0``, or the tool's name of it."""
    status: DiagnosticStatus
    message: str = ""


@record
class Diagnostics(FactGroup):
    """The results of diagnostic tools, from their files."""

    group: ClassVar[str] = "diagnostics"

    results: tuple[Diagnostic, ...]


@record
class UnreadLine:
    """A line of imported output that kdoctor does not know."""

    file: str
    line: int
    """Number of the line in the file, from 1."""
    text: str
    """At most 200 characters of it."""


@record
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


GROUPS = (Diagnostics, ImportedLines)
"""For the entry point ``kdoctor.facts``."""
