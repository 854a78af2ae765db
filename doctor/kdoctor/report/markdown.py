"""Markdown as GitHub shows it, for pull requests, issues and job summaries."""

import re
from collections.abc import Iterable, Iterator, Sequence

from kdoctor.engine.report import Mark, Report
from kdoctor.model import Severity
from kdoctor.report.causes import cause_blocks, heading, note_blocks, problem_blocks
from kdoctor.report.phrases import CONCLUSIONS, INTERRUPTED, MARK_NAMES, SIGNS, Label, family_title, tally, verdict_line
from kdoctor.report.sections import Block, Field, Section, drift_section, overview, sections
from kdoctor.text.canvas import Canvas
from kdoctor.text.lists import counted, grouped
from kdoctor.text.markdown import escape


def render_markdown(report: Report, canvas: Canvas) -> str:
    """The report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    conclusion = CONCLUSIONS[report.verdict.conclusion]
    yield from (f"## kdoctor: {conclusion}", "", escape(verdict_line(report)), "", escape(heading(report)), "")
    if report.interrupted:
        yield from (f"**{INTERRUPTED}**", "")
    yield from _table(
        ("", "Family", Label.OBSERVED),
        [
            (SIGNS[category.mark][0], family_title(category.family), escape(category.text))
            for category in report.categories
        ],
    )
    for block in problem_blocks(report):
        yield ""
        for finding in block.findings:
            yield from (f"### {SIGNS[block.mark or Mark.ERROR][0]} {escape(finding)}", "")
        yield from markdown_fields(field for field in block.fields if not field.detail)
        if block.id:
            yield f"- {Label.CHECK}: {_code(block.id)}"
    if drifted := drift_section(report.drift):
        yield from _section(drifted)
    yield from ("", "<details>", f"<summary>{Label.EVERY_CHECK}: {tally(report)}</summary>", "")
    yield from _every_check(report)
    yield from ("", "</details>")


def _every_check(report: Report) -> Iterator[str]:
    """The tables: each check, the trainings, and what the causes leave out."""
    shown = list(sections(report))
    checks = [block for section in shown if section.name == "checks" for block in section.blocks]
    yield from markdown_fields(overview(report))
    yield ""
    leaves = [leaf for block in checks for leaf in block.leaves()]
    rows = [leaf for leaf in leaves if leaf.mark is not Mark.SKIP]
    for reason, skipped in grouped((leaf.text, leaf) for leaf in leaves if leaf.mark is Mark.SKIP).items():
        title = f"{counted(len(skipped), 'check')}: {reason}"
        rows += skipped if len(skipped) == 1 else [Block(title=title, mark=Mark.SKIP)]
    yield from _table(
        ("Status", Label.CHECK, "Healthy condition", Label.OBSERVED),
        [(_word(row), _code(row.id) if row.id else "", escape(row.title), escape(_observed(row))) for row in rows],
    )
    scenarios = [block for block in checks if block.mark is None]
    if scenarios:
        yield from ("", f"### {family_title('smoke')}", "")
    for block in scenarios:
        expected = "; ".join(f"{field.label}: {escape(field.text)}" for field in block.fields)
        yield f"- {_code(block.id)} ({block.note}). {expected}"
        for leaf in block.leaves():
            yield f"  - {_word(leaf)} {_code(leaf.id)}: {escape(_observed(leaf)) or 'no measurements'}"
    for block in (*cause_blocks(report), *note_blocks(report)):
        yield ""
        for finding in block.findings:
            yield from (f"**{escape(finding)}**", "")
        is_note = block.note == Severity.INFO.value
        yield from markdown_fields(field for field in block.fields if field.detail or is_note)
    for section in shown:
        if section.name != "checks":
            yield from _section(section)


def _word(block: Block) -> str:
    return MARK_NAMES[block.mark] if block.mark else ""


def _observed(block: Block) -> str:
    if block.text:
        return block.text
    evidence = [f"{field.label}: {field.text}" for field in block.fields]
    return "; ".join([*block.findings, *evidence])


def _section(section: Section) -> Iterator[str]:
    yield from ("", f"### {section.title}", "")
    if section.text:
        yield from (escape(section.text), "")
    if section.table:
        yield from _table(section.table.head, [tuple(map(escape, row)) for row in section.table.rows])
        yield ""
    yield from markdown_fields(section.fields)
    for number, block in enumerate(section.blocks):
        if number:
            yield ""
        for finding in block.findings or (block.title,):
            yield from (f"**{escape(finding) or '-'}**", "")
        yield from markdown_fields(block.fields)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table whose cells are Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell or '-' for cell in row)} |"


def markdown_fields(fields: Iterable[Field]) -> Iterator[str]:
    """A list of fields, each with its commands as code."""
    for field in fields:
        yield f"- {escape(field.label)}: {escape(field.text)}".rstrip()
        if field.commands:
            # A fence inside the list's entry, longer than any run of backticks in the commands.
            text = "\n".join(field.commands)
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text) or [""]))
            yield from ("", *(f"  {line}" if line else "" for line in (f"{fence}sh", *text.split("\n"), fence)), "")


def _code(identifier: str) -> str:
    return f"`{identifier}`"
