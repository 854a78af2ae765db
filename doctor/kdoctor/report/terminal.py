"""The report for people: calm when all is well, complete when it is not, readable in a log."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kdoctor.engine.report import Decision, Drift, JudgedFinding, Report, Result
from kdoctor.model import Remedy, Rollback, Severity, Status
from kdoctor.report.phrases import (
    FAMILY_TITLES,
    by_family,
    counting,
    criteria_words,
    failures,
    gpu_work_words,
    reason_words,
    rollback_words,
    verdict_words,
    waived,
)
from kdoctor.text.canvas import Canvas

_STYLES = {Status.PASS: "green", Status.FAIL: "bold red", Status.SKIP: "dim", Status.UNKNOWN: "bold yellow"}
_VERDICT_STYLES = {"pass": "bold green", "fail": "bold red", "unknown": "bold yellow"}
_MARK_WIDTH = 9
_LABEL_WIDTH = 10
_EVIDENCE_SHOWN = 3
_EVIDENCE_LONGEST = 240


def render_terminal(report: Report, canvas: Canvas) -> str:
    """The report as text of the canvas's width; commands and paths are never broken."""
    page = _Page(canvas)
    _head(page, report)
    for family, results in by_family(report.results):
        page.heading(FAMILY_TITLES[family])
        if family in ("smoke", "job") and report.scenarios:
            _scenarios(page, report, results)
        else:
            _results(page, results)
    _gpu_work(page, report)
    _waived(page, report)
    _unused(page, report)
    _drift(page, report.drift)
    _failures(page, report)
    _decisions(page, report.decisions)
    page.blank()
    page.line(Text(verdict_words(report), style=_VERDICT_STYLES[report.verdict.conclusion.value]))
    return page.text()


class _Page:
    """Lines of text with hanging indents."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._out = io.StringIO()
        # Width and height are both given, so that rich asks neither the terminal nor the environment.
        self._console = Console(
            file=self._out,
            width=canvas.width,
            height=25,
            force_terminal=canvas.colour,
            force_jupyter=False,  # in a notebook's kernel rich would show each line there, and return nothing
            color_system="standard" if canvas.colour else None,
            no_color=not canvas.colour,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )

    def text(self) -> str:
        """Everything that was written."""
        written = self._out.getvalue()
        return written if self._canvas.unicode else written.encode("ascii", "backslashreplace").decode("ascii")

    def blank(self) -> None:
        self._console.print()

    def heading(self, text: str) -> None:
        self.blank()
        self.line(Text(text, style="bold"))

    def line(self, text: Text) -> None:
        """One line as it is, however long."""
        self._console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)

    def paragraph(self, first: Text, body: str, *, indent: int, style: str = "") -> None:
        """Text that wraps at words, under a hanging indent; ``first`` stands before it."""
        for number, line in enumerate(_wrapped(body or "-", max(20, self._canvas.width - indent))):
            start = first.copy() if number == 0 else Text()
            start.pad_right(indent - start.cell_len)
            joined = Text.assemble(start, (line, style))
            joined.rstrip()
            self.line(joined)

    def labelled(self, label: str, body: str, *, indent: int = 4) -> None:
        """``Observed  ...``."""
        first = Text(" " * indent)
        first.append(label, style="bold" if label == "Fix" else "dim")
        self.paragraph(first, body, indent=indent + _LABEL_WIDTH)

    def commands(self, commands: Sequence[str], *, indent: int = 6 + _LABEL_WIDTH) -> None:
        """Commands that can be pasted: never wrapped, never cut."""
        for command in commands:
            for part in command.split("\n"):
                self.line(Text(" " * indent).append(part, style="cyan"))


def _wrapped(body: str, room: int) -> Iterator[str]:
    """The lines of a text, each broken between words only: a path or an address stays whole, so it can be copied."""
    for line in body.expandtabs(4).splitlines():
        words = line.split()
        # What was indented (a Python stack) stays so.
        current = line[: len(line) - len(line.lstrip())] + (words[0] if words else "")
        for word in words[1:]:
            if cell_len(current) + 1 + cell_len(word) > room:
                yield current
                current = word
            else:
                current += " " + word
        yield current


def _head(page: _Page, report: Report) -> None:
    width = 11
    page.paragraph(Text("Target", style="dim"), report.target, indent=width)
    checklist = f"{report.checklist.name}, version {report.checklist.version}"
    page.paragraph(Text("Checklist", style="dim"), checklist, indent=width)
    if report.started_at:
        page.paragraph(Text("Started", style="dim"), report.started_at, indent=width)
    if report.interrupted:
        page.paragraph(Text(), "The run was interrupted: what is missing says nothing.", indent=0, style="bold yellow")


def _results(page: _Page, results: Sequence[Result], *, evidence_in_full: bool = False) -> None:
    """Each check; neighbours that were skipped for one reason are told together."""
    for reason, grouped in groupby(results, key=_skip_reason):
        group = list(grouped)
        if reason is not None and len(group) > 1:
            page.paragraph(_mark(Status.SKIP), f"{len(group)} checks: {reason}", indent=2 + _MARK_WIDTH)
            page.paragraph(Text(), ", ".join(result.id for result in group), indent=2 + _MARK_WIDTH, style="dim")
            continue
        for result in group:
            _result(page, result, evidence_in_full=evidence_in_full)


def _skip_reason(result: Result) -> str | None:
    return reason_words(result) if result.status is Status.SKIP and not result.findings else None


def _result(page: _Page, result: Result, *, evidence_in_full: bool) -> None:
    indent = 2 + _MARK_WIDTH
    page.paragraph(_mark(result.status), result.title, indent=indent)
    if not evidence_in_full or result.status in (Status.SKIP, Status.UNKNOWN):
        page.paragraph(Text(), f"{result.id}: {_short(result)}", indent=indent, style="dim")
        return
    page.paragraph(Text(), f"{result.id}{_see_below(result)}", indent=indent, style="dim")
    for evidence in result.evidence:
        page.paragraph(Text(" " * indent + "- "), f"{evidence.subject}: {evidence.observed}", indent=indent + 2)


def _mark(status: Status) -> Text:
    return Text("  ").append(status.value.upper(), style=_STYLES[status])


def _short(result: Result) -> str:
    """What was found, in short: the whole of it stands further down or in the JSON report."""
    if result.status in (Status.SKIP, Status.UNKNOWN):
        return reason_words(result)
    if result.status is Status.FAIL:
        return _see_below(result).removeprefix(": ")
    shown = [f"{evidence.subject}: {evidence.observed}" for evidence in result.evidence[:_EVIDENCE_SHOWN]]
    text = " ".join("; ".join(shown).split())
    if len(text) > _EVIDENCE_LONGEST:
        text = text[: _EVIDENCE_LONGEST - 3] + "..."
    more = len(result.evidence) - _EVIDENCE_SHOWN
    return f"{text}; and {more} more" if more > 0 else text


def _see_below(result: Result) -> str:
    if result.status is not Status.FAIL:
        return ""
    number = len(counting(result))
    return f": {result.severity.value}, {number} finding{'s' if number > 1 else ''}, see below"


def _scenarios(page: _Page, report: Report, results: Sequence[Result]) -> None:
    noted = {note.id for note in report.scenarios}
    _results(page, [result for result in results if result.scenario not in noted])
    mine = {result.scenario for result in results}
    for number, note in enumerate(note for note in report.scenarios if note.id in mine):
        if number:
            page.blank()
        page.line(Text("  ").append(note.id, style="bold").append(f" ({note.kind})"))
        page.paragraph(Text("  Expected", style="dim"), note.expect, indent=2 + _MARK_WIDTH)
        judging = [result for result in results if result.scenario == note.id]
        _results(page, judging, evidence_in_full=True)


def _gpu_work(page: _Page, report: Report) -> None:
    if report.gpu_work:
        page.heading("GPUs during the trainings")
    for work in report.gpu_work:
        page.paragraph(Text(f"  GPU {work.index}"), gpu_work_words(work), indent=2 + _MARK_WIDTH)


def _waived(page: _Page, report: Report) -> None:
    found = waived(report)
    if found:
        page.heading("Waived")
    for result, judged in found:
        page.line(Text("  ").append(result.id, style="bold").append(f" ({result.severity.value})"))
        _observation(page, judged)
        if judged.waiver:
            waiver = judged.waiver
            page.labelled("Waiver", f"until {waiver.expires}, by {waiver.owner}: {waiver.reason}")


def _unused(page: _Page, report: Report) -> None:
    if report.unused_waivers:
        page.heading("Waivers that match nothing any more")
    for waiver in report.unused_waivers:
        line = f"{waiver.check} ({waiver.subject}), until {waiver.expires}, by {waiver.owner}: {waiver.reason}"
        page.paragraph(Text("  - "), line, indent=4)


def _failures(page: _Page, report: Report) -> None:
    failed = failures(report)
    if failed:
        page.heading("Failures")
    for number, result in enumerate(failed):
        if number:
            page.blank()
        severity_style = "bold red" if result.severity is Severity.ERROR else "bold yellow"
        page.line(Text("  ").append(result.id, style="bold").append(f" ({result.severity.value})", severity_style))
        page.paragraph(Text(), f"Not so: {result.title}", indent=2)
        page.blank()
        _findings(page, result)
        for item in result.unjudged:
            page.labelled("Unjudged", f"{item.subject}: {item.reason}")


def _findings(page: _Page, result: Result) -> None:
    """Each finding; neighbours with one way out share it."""
    for number, (way_out, group) in enumerate(_by_way_out(result)):
        if number:
            page.blank()
        for position, judged in enumerate(group):
            if position:
                page.blank()
            _observation(page, judged)
            page.labelled("Expected", judged.finding.expected)
            if judged.waiver:
                waiver = judged.waiver
                page.labelled("Waiver", f"expired on {waiver.expires} ({waiver.owner}): {waiver.reason}")
        page.labelled("Why", result.why)
        remedy, rollback = way_out
        page.labelled("Fix", f"{remedy.summary} ({remedy.action.value})")
        page.commands(remedy.commands)
        page.labelled("Rollback", rollback_words(rollback))
        page.commands(rollback.commands)


def _by_way_out(result: Result) -> Iterator[tuple[tuple[Remedy, Rollback], list[JudgedFinding]]]:
    for way_out, group in groupby(
        counting(result), key=lambda judged: (judged.finding.remedy, judged.finding.rollback)
    ):
        yield way_out, list(group)


def _observation(page: _Page, judged: JudgedFinding) -> None:
    page.labelled("Subject", judged.finding.subject)
    page.labelled("Observed", judged.finding.observed)


def _drift(page: _Page, drift: Drift | None) -> None:
    """What changed since the last green run; nothing if nothing did."""
    if drift is None or not (drift.changes or drift.unread):
        return
    page.heading("Changed since the last green run")
    page.paragraph(Text(), f"recorded {drift.recorded} in {drift.lock}", indent=2, style="dim")
    for change in drift.changes:
        line = f"{change.fact}: {change.old or 'nothing'} -> {change.new or 'nothing'}"
        page.paragraph(Text("  - "), line, indent=4)
        if change.explains:
            page.paragraph(Text(), f"may explain {', '.join(change.explains)}", indent=6, style="dim")
    for text in drift.unread:
        page.paragraph(Text("  - "), f"not compared: {text}", indent=4)


def _decisions(page: _Page, decisions: Sequence[Decision]) -> None:
    """What was decided in advance: the course, by which criterion, who decides by when, and the steps."""
    if decisions:
        page.heading("Decided in advance")
    for number, decision in enumerate(decisions):
        if number:
            page.blank()
        page.paragraph(Text(), f"{decision.action.capitalize()}: {', '.join(decision.checks)}", indent=2)
        if decision.criteria:
            page.labelled("Why", criteria_words(decision))
        if decision.decides:
            page.labelled("Decides", decision.decides + (f", within {decision.within}" if decision.within else ""))
        for position, step in enumerate(decision.steps, 1):
            page.labelled(f"Step {position}", step.summary)
            page.commands(step.commands)
