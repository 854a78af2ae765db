"""Lines of text with hanging indents, marks and colours."""

from __future__ import annotations

from rich.color import ColorSystem
from rich.style import Style

from kdoctor.engine.report import Mark
from kdoctor.report.phrases import SIGNS, Label
from kdoctor.report.sections import Field
from kdoctor.text.canvas import Canvas
from kdoctor.text.wrap import shorten, wrap

STYLES = {
    Mark.PASS: "green",
    Mark.WARNING: "bold yellow",
    Mark.ERROR: "bold red",
    Mark.INFO: "dim",
    Mark.SKIP: "dim",
    Mark.UNKNOWN: "bold yellow",
}


class Page:
    """Text that is written line by line for a canvas."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self._lines: list[str] = []

    @property
    def height(self) -> int:
        """Number of lines so far."""
        return len(self._lines)

    def text(self) -> str:
        """Everything that was written, each line with its line feed."""
        return "".join(f"{line}\n" for line in self._lines)

    def append(self, other: Page) -> None:
        """Add the lines of another page of this canvas."""
        self._lines += other._lines

    def blank(self) -> None:
        """An empty line."""
        self._lines.append("")

    def line(self, text: str, style: str = "") -> None:
        """One line as it is, however long."""
        self._lines.append(self.paint(text, style))

    def cut(self, text: str, *, lead: str = "", lead_style: str = "", title: str = "") -> None:
        """One line, which ends in ``...`` where it does not fit."""
        rest = shorten(" ".join(text.split()), self.canvas.width - len(lead) - len(title))
        self._lines.append(self.paint(lead, lead_style) + title + rest)

    def paragraph(  # noqa: PLR0913 - how a paragraph looks
        self,
        text: str,
        *,
        indent: int = 0,
        lead: str = "",
        lead_style: str = "",
        hang: int | None = None,
        style: str = "",
        most: int | None = None,
    ) -> None:
        """Text that wraps at words.

        Args:
            text: one paragraph; its own line breaks stay.
            indent: columns before the first line.
            lead: what starts the first line.
            lead_style: the colour of the lead.
            hang: columns before the other lines; to the end of the lead if omitted.
            style: the colour of the text.
            most: number of lines after which the text is cut.
        """
        start = " " * indent + lead
        rest = " " * (len(start) if hang is None else hang)
        first, *others = wrap(text or "-", self.canvas.width, first=start, rest=rest, lines=True)
        if most is not None and len(others) >= most:
            kept = [first, *others][:most]
            whole, stop, _ = kept[-1].rpartition(". ")  # the beginning of a sentence says nothing
            kept[-1] = shorten(f"{whole}. ..." if stop else f"{kept[-1]} ...", self.canvas.width)
            first, *others = kept
        self.line(" " * indent + self.paint(lead, lead_style) + self.paint(first[len(start) :], style))
        for line in others:
            self.line(line, style)

    def field(self, field: Field, *, indent: int = 4, most: int | None = None) -> None:
        """``Fix: ...``, and its commands on lines that can be pasted: never wrapped, never cut."""
        if not field.text and len(field.commands) == 1 and "\n" not in field.commands[0]:
            self.line(f"{' ' * indent}{self.paint(f'{field.label}:', 'dim')} {self.paint(field.commands[0], 'cyan')}")
            return
        label, place = f"{field.label}:", self.height
        text = field.text if field.text or field.commands else "-"
        self.paragraph(f"{label} {text}", indent=indent, hang=indent + 2, most=most)
        painted = self.paint(label, "bold" if field.label == Label.FIX else "dim")
        self._lines[place] = self._lines[place].replace(label, painted, 1)
        self.commands(field.commands, indent=indent + 4)

    def commands(self, commands: tuple[str, ...], *, indent: int) -> None:
        """Each command on separate lines, as it is."""
        for command in commands:
            for line in command.split("\n"):
                self.line(" " * indent + self.paint(line, "cyan"))

    def sign(self, mark: Mark) -> str:
        """``✓``, or ``ok`` where the canvas cannot show it."""
        return SIGNS[mark][0 if self.canvas.unicode else 1]

    def paint(self, text: str, style: str) -> str:
        """The text in a style of rich, if the canvas shows colours."""
        if not (self.canvas.colour and text and style):
            return text
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)
