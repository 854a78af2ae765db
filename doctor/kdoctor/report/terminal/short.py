"""The short report: one screen with the families in one line each, the causes, and the verdict."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from kdoctor.commands.ownership import CHECK_ANOTHER
from kdoctor.engine.categories import noted
from kdoctor.engine.report import Category, Conclusion, Mark, Report
from kdoctor.report.causes import heading, problem_blocks
from kdoctor.report.phrases import INTERRUPTED, VERDICT_MARKS, Label, check_again, family_title, verdict_line
from kdoctor.report.sections import Block
from kdoctor.report.terminal.full import render_full
from kdoctor.report.terminal.page import STYLES, Page
from kdoctor.text.canvas import SCREEN, Canvas
from kdoctor.text.lists import counted, grouped, some
from kdoctor.text.wrap import first_sentence

_TITLE_WIDTH = 12
_HEADINGS = 3
_TEXT_LINES = 3


def render_terminal(report: Report, canvas: Canvas) -> str:
    """The report as text of the canvas's width. Commands and paths are never broken.

    With verbosity 0 it is one screen: the families in one line each, the causes, and the verdict. From 1 on it has
    every check, and from 2 on also reasons and sources.
    """
    return render_full(report, canvas, canvas.verbosity) if canvas.verbosity else render_short(report, canvas)


def render_short(report: Report, canvas: Canvas) -> str:
    """The short report as text, in at most SCREEN lines: causes that do not fit in full are one line each."""
    page = Page(canvas)
    page.paragraph(heading(report), hang=2)
    if report.interrupted:
        page.paragraph(INTERRUPTED, style="bold yellow")
    page.blank()
    _categories(page, report.categories)
    below = _below(report, canvas)
    page.append(_fitted(problem_blocks(report), SCREEN - page.height - below.height, canvas))
    page.append(below)
    return page.text()


def _below(report: Report, canvas: Canvas) -> Page:
    """The command that runs the checks again or shows all of them, and the verdict."""
    page = Page(canvas)
    page.blank()
    for note in _notes(report):
        page.paragraph(note, hang=2)
    if report.command and report.plan:
        label = check_again(report) + ("" if report.details else " (-v: every check)")
        page.line(f"{label}: {page.paint(report.command, 'cyan')}")
    if report.command and (report.details or not report.plan):
        page.line(f"{Label.EVERY_CHECK}: {page.paint(report.details or f'{report.command} -v', 'cyan')}")
    page.paragraph(verdict_line(report), hang=2, style=STYLES[VERDICT_MARKS[report.verdict.conclusion]])
    return page


def _notes(report: Report) -> Iterator[str]:
    """Harmless events next to a problem, drift, waivers that cover nothing, and those of a run that did not pass."""
    yield from noted(report.results)[:_HEADINGS]
    if report.drift and report.drift.changes and not any(step.kind == "rollback" for step in report.plan):
        changed = [f"{one.fact} {one.old or 'absent'} -> {one.new or 'absent'}" for one in report.drift.changes]
        yield f"Since the last passing run: {some(changed, 1)}"
    findings = [(result.id, judged) for result in report.results for judged in result.findings]
    if report.unused_waivers:
        subjects = grouped((check, judged.finding.subject) for check, judged in findings)
        unused = [
            f"{waiver.check} {waiver.subject}"
            + (f" (found: {some(found)})" if (found := subjects.get(waiver.check)) else "")
            for waiver in report.unused_waivers
        ]
        yield f"{counted(len(unused), 'waiver matches', 'waivers match')} no finding: {some(unused)}"
    waived = [
        f"{check} until {judged.waiver.expires}" for check, judged in findings if judged.waiver and not judged.counts
    ]
    if waived and report.verdict.conclusion is not Conclusion.PASS:
        yield f"Waived: {some(list(dict.fromkeys(waived)))}"


def _categories(page: Page, categories: Sequence[Category]) -> None:
    """``[✓] Versions    Python 3.11.7, TensorFlow 2.21.0``. Families skipped for one reason share a line."""
    skipped: dict[str, list[str]] = {}
    for category in categories:
        if category.mark is Mark.SKIP:
            skipped.setdefault(category.text, []).append(family_title(category.family))
    for category in categories:
        if len(skipped.get(category.text, ())) < 2:  # noqa: PLR2004 - alone
            lead, title = f"[{page.sign(category.mark)}] ", family_title(category.family)
            page.cut(category.text, lead=lead, lead_style=STYLES[category.mark], title=f"{title:{_TITLE_WIDTH}} ")
    lead, style = f"[{page.sign(Mark.SKIP)}] ", STYLES[Mark.SKIP]
    for reason, titles in skipped.items():
        if len(titles) > 1:
            page.paragraph(f"{', '.join(titles)}: {reason}", lead=lead, lead_style=style)


def _fitted(blocks: Sequence[Block], room: int, canvas: Canvas) -> Page:
    """The causes in at most ``room`` lines, texts cut and the last ones in one line each only if necessary."""
    most, fewest = len(blocks), int(not blocks or _mark(blocks[0]) is not Mark.UNKNOWN)
    falling = range(most, 0, -1)
    layouts: list[dict[str, Any]] = [{"full": most, "shown": most, "why": True}]
    layouts += [{"full": number, "shown": most, "fixed": most} for number in falling]
    layouts += [{"full": 1, "shown": most, "fixed": number} for number in falling]
    layouts += [{"full": fewest, "shown": number} for number in falling]
    for layout, lines in product(layouts, (None, _TEXT_LINES)):
        page = _drawn(blocks, canvas, lines, **layout)
        if page.height <= room:
            break
    return page


def _drawn(  # noqa: PLR0913 - the ways to save lines
    blocks: Sequence[Block],
    canvas: Canvas,
    most: int | None,
    *,
    full: int,
    shown: int,
    fixed: int = 0,
    why: bool = False,
) -> Page:
    """The first causes, each text in ``most`` lines, the next with one line for the fix, and how many are left."""
    page = Page(canvas)
    for block in blocks[:full]:
        page.blank()
        _cause(page, block, most, why=why)
    if blocks[full:]:
        page.blank()
    for number, block in enumerate(blocks[full:shown], full):
        first, *others = block.findings
        more = f" (and {len(others)} more)" if others else ""
        lead = f"{page.sign(_mark(block))} "
        name = f" ({block.id})" if block.id else f": {block.fields[0].text}"  # why it could not be judged
        page.cut(f"{first}{more}{name}", lead=lead, lead_style=STYLES[_mark(block)])
        if number < fixed:
            _fix_in_one_line(page, block)
    if blocks[shown:]:
        page.line(f"  and {len(blocks) - shown} more (-v)")
    return page


def _fix_in_one_line(page: Page, block: Block) -> None:
    """The commands if the fix can be pasted, and otherwise what to do."""
    fix = next((field for field in block.fields if field.label == Label.FIX), None)
    command = " && ".join(fix.commands) if fix else ""
    if command and not any(text in command for text in (CHECK_ANOTHER, "\n", " #", "<")):
        page.line(f"  {Label.FIX}: {page.paint(command, 'cyan')}")
    elif fix:
        page.cut(fix.text.rstrip(":"), lead=f"  {Label.FIX}: ")


def _cause(page: Page, block: Block, most: int | None, *, why: bool) -> None:
    """What is wrong, the fix, and what else it explains."""
    style = STYLES[_mark(block)]
    lead = f"{page.sign(_mark(block))} "
    for number, finding in enumerate(block.findings[:_HEADINGS]):
        begin = lead if number == 0 else " " * len(lead)
        page.paragraph(finding, lead=begin, lead_style=style, style=style, most=most)
    if len(block.findings) > _HEADINGS:
        page.line(f"  and {len(block.findings) - _HEADINGS} more")
    reason = next((field.text for field in block.fields if field.label == Label.WHY), "")
    if why and reason and block.mark is Mark.ERROR:
        page.paragraph(first_sentence(reason), indent=2, hang=2, most=most)
    for field in block.fields:
        if not field.detail:
            page.field(field, indent=2, most=most)
    if block.id:
        page.line(f"  {block.id}", "dim")


def _mark(block: Block) -> Mark:
    return block.mark or Mark.ERROR
