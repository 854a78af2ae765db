"""The report for terminals and logs."""

from __future__ import annotations

from collections.abc import Iterable

from rich.color import ColorSystem
from rich.style import Style

from kdoctor.engine.report import Report
from kdoctor.model import Severity, Status
from kdoctor.report.phrases import INTERRUPTED, Label, verdict_line
from kdoctor.report.sections import Block, Field, Section, overview, sections
from kdoctor.text.canvas import Canvas
from kdoctor.text.lists import counted
from kdoctor.text.wrap import to_ascii, wrap

_STYLES = {Status.PASS: "green", Status.FAIL: "bold red", Status.SKIP: "dim", Status.UNKNOWN: "bold yellow"}
_VERDICT_STYLES = {"pass": "bold green", "fail": "bold red", "unknown": "bold yellow"}
_MARK_WIDTH = 9
_EVIDENCE_SHOWN = 3
_EVIDENCE_LONGEST = 240


def render_terminal(report: Report, canvas: Canvas) -> str:
    """The report as text of the canvas's width. Commands and paths are never broken."""
    page = _Page(canvas)
    head = overview(report)
    width = max(len(field.label) for field in head) + 2
    for field in head:
        page.paragraph(field.text, lead=f"{field.label:{width}}", lead_style="dim")
    if report.interrupted:
        page.paragraph(INTERRUPTED, style="bold yellow")
    for section in sections(report, most_severe_last=True):
        page.blank()
        page.line(section.title, "bold")
        if section.name == "checks":
            _checks(page, section.blocks)
        else:
            _details(page, section)
    page.blank()
    page.line(verdict_line(report), _VERDICT_STYLES[report.verdict.conclusion.value])
    return page.text()


class _Page:
    """Lines of text with hanging indents."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._lines: list[str] = []

    def text(self) -> str:
        """Everything that was written."""
        text = "\n".join(self._lines) + "\n"
        return text if self._canvas.unicode else to_ascii(text)

    def blank(self) -> None:
        self._lines.append("")

    def line(self, text: str, style: str = "") -> None:
        """One line as it is, however long."""
        self._lines.append(self._paint(text, style))

    def paragraph(  # noqa: PLR0913 - how a paragraph looks
        self,
        text: str,
        *,
        indent: int = 0,
        lead: str = "",
        lead_style: str = "",
        hang: int | None = None,
        style: str = "",
    ) -> None:
        """Text that wraps at words. ``lead`` starts the first line; the others are indented by ``hang``."""
        start = " " * indent + lead
        rest = " " * (len(start) if hang is None else hang)
        first, *others = wrap(text or "-", self._canvas.width, first=start, rest=rest, lines=True)
        self.line(" " * indent + self._paint(lead, lead_style) + self._paint(first[len(start) :], style))
        for line in others:
            self.line(line, style)

    def field(self, field: Field, *, indent: int = 4) -> None:
        """``Fix: ...``, and its commands on lines that can be pasted: never wrapped, never cut."""
        label = f"{field.label}:"
        start, rest = " " * indent, " " * (indent + 2)
        lines = wrap(f"{label} {field.text}", self._canvas.width, first=start, rest=rest, lines=True)
        self.line(lines[0].replace(label, self._paint(label, "bold" if field.label == Label.FIX else "dim"), 1))
        for line in lines[1:]:
            self.line(line)
        for command in field.commands:
            for line in command.split("\n"):
                self.line(" " * (indent + 4) + self._paint(line, "cyan"))

    def _paint(self, text: str, style: str) -> str:
        if not (self._canvas.colour and text and style):
            return text
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def _checks(page: _Page, blocks: Iterable[Block], *, in_full: bool = False) -> None:
    indent = 2 + _MARK_WIDTH
    for number, block in enumerate(blocks):
        if block.status is None:
            if number:
                page.blank()
            _scenario(page, block)
            continue
        status = block.status
        first, more = (block.findings[0], len(block.findings) - 1) if block.findings else (block.title, 0)
        heading = f"{first} (and {more} more)" if more else first
        page.paragraph(heading, indent=2, lead=f"{status.value.upper():{_MARK_WIDTH}}", lead_style=_STYLES[status])
        if block.blocks:
            page.paragraph(", ".join(member.id for member in block.blocks), indent=indent, style="dim")
        elif in_full and status in (Status.PASS, Status.FAIL):
            page.paragraph(f"{block.id}{_see_below(block)}", indent=indent, style="dim")
            for field in block.fields:
                page.paragraph(f"{field.label}: {field.text}", indent=indent, lead="- ")
        else:
            page.paragraph(f"{block.id}{_see_below(block) or ': ' + _short(block)}", indent=indent, style="dim")


def _scenario(page: _Page, block: Block) -> None:
    page.line(f"  {block.id} ({block.note})", "bold")
    for field in block.fields:
        page.field(field, indent=2)
    _checks(page, block.blocks, in_full=True)


def _short(block: Block) -> str:
    """The reason, or the first evidence. All of it is in the JSON report."""
    if block.text:
        return block.text
    shown = "; ".join(f"{field.label}: {field.text}" for field in block.fields[:_EVIDENCE_SHOWN])
    text = " ".join(shown.split())
    if len(text) > _EVIDENCE_LONGEST:
        text = text[: _EVIDENCE_LONGEST - 3] + "..."
    more = len(block.fields) - _EVIDENCE_SHOWN
    return f"{text}; and {more} more" if more > 0 else text


def _see_below(block: Block) -> str:
    if block.status is not Status.FAIL:
        return ""
    return f": {block.note}, {counted(len(block.findings), 'finding')}, see below"


def _details(page: _Page, section: Section) -> None:
    if section.text:
        page.paragraph(section.text, indent=2, style="dim")
    for fact, old, new, explains in section.table.rows if section.table else ():
        page.paragraph(f"{fact}: {old} -> {new}", indent=2, lead="- ")
        if explains:
            page.field(Field(label=Label.MAY_EXPLAIN, text=explains), indent=6)
    for field in section.fields:
        page.paragraph(f"{field.label}: {field.text}", indent=2, lead="- ")
    for number, block in enumerate(section.blocks):
        if number:
            page.blank()
        severe = "bold red" if block.note == Severity.ERROR.value else "bold yellow"
        for heading in block.findings or (block.title,):
            page.paragraph(heading, indent=2, style=severe if section.name == "failures" else "bold", hang=4)
        for field in block.fields:
            page.field(field)
