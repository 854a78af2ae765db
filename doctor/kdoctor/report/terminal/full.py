"""The full report: every check with its evidence, and every cause with its details."""

from collections.abc import Iterable

from kdoctor.engine.report import Mark, Report
from kdoctor.report.causes import cause_blocks, note_blocks
from kdoctor.report.phrases import INTERRUPTED, MARK_NAMES, VERDICT_MARKS, Label, verdict_line
from kdoctor.report.sections import Block, Field, Section, drift_section, overview, sections
from kdoctor.report.terminal.page import STYLES, Page
from kdoctor.text.canvas import Canvas
from kdoctor.text.lists import counted

_MARK_WIDTH = 9
_EVIDENCE_SHOWN = 3
_EVIDENCE_LONGEST = 240


def render_full(report: Report, canvas: Canvas, verbosity: int) -> str:
    """The full report as text, problems first; from verbosity 2 on with reasons and sources."""
    page = Page(canvas)
    head = overview(report)
    width = max(len(field.label) for field in head) + 2
    for field in head:
        page.paragraph(field.text, lead=f"{field.label:{width}}", lead_style="dim")
    if report.interrupted:
        page.paragraph(INTERRUPTED, style="bold yellow")
    for title, blocks in (("Problems", cause_blocks(report)), ("Notes", note_blocks(report))):
        if blocks:
            _title(page, title)
            _blocks(page, blocks, verbosity)
    rest = []
    for section in sections(report):
        if section.name == "checks":
            _title(page, section.title)
            _checks(page, section.blocks)
        else:
            rest.append(section)
    for section in rest:
        _section(page, section, verbosity)
    if drifted := drift_section(report.drift):
        _section(page, drifted, verbosity)
    page.blank()
    page.paragraph(verdict_line(report), hang=2, style=STYLES[VERDICT_MARKS[report.verdict.conclusion]])
    return page.text()


def _title(page: Page, title: str) -> None:
    page.blank()
    page.line(title, "bold")


def _checks(page: Page, blocks: Iterable[Block], *, in_full: bool = False) -> None:
    indent = 2 + _MARK_WIDTH
    for number, block in enumerate(blocks):
        if block.mark is None:
            if number:
                page.blank()
            _scenario(page, block)
            continue
        first, more = (block.findings[0], len(block.findings) - 1) if block.findings else (block.title, 0)
        heading = f"{first} (and {more} more)" if more else first
        lead = f"{MARK_NAMES[block.mark]:{_MARK_WIDTH}}"
        if block.findings:  # they are in full above
            page.cut(heading, lead=f"  {lead}", lead_style=STYLES[block.mark])
        else:
            page.paragraph(heading, indent=2, lead=lead, lead_style=STYLES[block.mark])
        if block.blocks:
            page.paragraph(", ".join(member.id for member in block.blocks), indent=indent, style="dim")
        elif in_full and not block.text:
            page.paragraph(f"{block.id}{_see_above(block)}", indent=indent, style="dim")
            for field in block.fields:
                page.paragraph(f"{field.label}: {field.text}", indent=indent, lead="- ")
        else:
            page.paragraph(
                f"{block.id}{_see_above(block) or ': ' + _first_evidence(block)}", indent=indent, style="dim"
            )


def _scenario(page: Page, block: Block) -> None:
    page.line(f"  {block.id} ({block.note})", "bold")
    for field in block.fields:
        page.field(field, indent=2)
    _checks(page, block.blocks, in_full=True)


def _first_evidence(block: Block) -> str:
    """The reason, or the first evidence. All of it is in the JSON report."""
    if block.text:
        return block.text
    shown = "; ".join(f"{field.label}: {field.text}" for field in block.fields[:_EVIDENCE_SHOWN])
    text = " ".join(shown.split())
    if len(text) > _EVIDENCE_LONGEST:
        text = text[: _EVIDENCE_LONGEST - 3] + "..."
    more = len(block.fields) - _EVIDENCE_SHOWN
    return f"{text}; and {more} more" if more > 0 else text


def _see_above(block: Block) -> str:
    return f": {counted(len(block.findings), 'finding')}, see above" if block.findings else ""


def _section(page: Page, section: Section, verbosity: int) -> None:
    _title(page, section.title)
    if section.text:
        page.paragraph(section.text, indent=2, style="dim")
    for fact, old, new, explains in section.table.rows if section.table else ():
        page.paragraph(f"{fact}: {old} -> {new}", indent=2, lead="- ")
        if explains:
            page.field(Field(label=Label.MAY_EXPLAIN, text=explains), indent=6)
    for field in section.fields:
        page.paragraph(f"{field.label}: {field.text}", indent=2, lead="- ")
    _blocks(page, section.blocks, verbosity)


def _blocks(page: Page, blocks: Iterable[Block], verbosity: int) -> None:
    for number, block in enumerate(blocks):
        if number:
            page.blank()
        style = STYLES[block.mark] if block.mark and block.mark is not Mark.PASS else "bold"
        for heading in block.findings or (block.title,):
            page.paragraph(heading, indent=2, style=style, hang=4)
        for field in block.fields:
            if field.detail <= verbosity:
                page.field(field)
