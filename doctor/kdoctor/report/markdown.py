"""Markdown as GitHub shows it, for pull requests, issues and job summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kdoctor.engine.report import JudgedFinding, Report, Result
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

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$!])")
_AT_START = re.compile(r"^(\d*)([-+=.)])")


def render_markdown(report: Report) -> str:
    """The report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"## kdoctor: {report.verdict.conclusion.value.upper()}"
    yield ""
    yield escape(verdict_words(report))
    yield ""
    yield f"- Target: {escape(report.target)}"
    yield f"- Checklist: {escape(report.checklist.name)}, version {report.checklist.version}"
    if report.interrupted:
        yield "- **The run was interrupted: what is missing says nothing.**"
    yield ""
    yield from _table(report)
    yield from _scenarios(report)
    yield from _gpu_work(report)
    yield from _waived(report)
    yield from _unused(report)
    yield from _drift(report)
    yield from _failures(report)
    yield from _decisions(report)


def _table(report: Report) -> Iterator[str]:
    yield "| | Check | Healthy condition | What was found |"
    yield "|---|---|---|---|"
    for _, results in by_family(report.results):
        for result in results:
            cells = (result.status.value.upper(), _code(result.id), _cell(result.title), _cell(_found(result)))
            yield f"| {' | '.join(cells)} |"


def _found(result: Result) -> str:
    if result.status.value in ("skip", "unknown"):
        return reason_words(result)
    shown = [f"{finding.finding.subject}: {finding.finding.observed}" for finding in counting(result)]
    shown += [f"{evidence.subject}: {evidence.observed}" for evidence in result.evidence]
    prefix = f"{result.severity.value}: " if counting(result) else ""
    return prefix + "; ".join(shown)


def _scenarios(report: Report) -> Iterator[str]:
    if not report.scenarios:
        return
    yield from ("", f"### {FAMILY_TITLES['smoke']}", "")
    for note in report.scenarios:
        yield f"- {_code(note.id)} ({note.kind}). Expected: {escape(note.expect)}"
        for result in report.results:
            if result.scenario == note.id:
                measured = _found(result) or "nothing was measured"
                yield f"  - {result.status.value.upper()} {_code(result.id)}: {escape(measured)}"


def _gpu_work(report: Report) -> Iterator[str]:
    if not report.gpu_work:
        return
    yield from ("", "### GPUs during the trainings", "")
    for work in report.gpu_work:
        yield f"- GPU {work.index} ({escape(work.name)}): {escape(gpu_work_words(work))}"


def _waived(report: Report) -> Iterator[str]:
    found = waived(report)
    if not found:
        return
    yield from ("", "### Waived", "")
    for result, judged in found:
        waiver = judged.waiver
        if waiver:
            agreement = f"waived by {waiver.owner} until {waiver.expires}: {waiver.reason}"
            text = f"{judged.finding.subject}: {judged.finding.observed}; {agreement}"
            yield f"- {_code(result.id)} {escape(text)}"


def _unused(report: Report) -> Iterator[str]:
    if not report.unused_waivers:
        return
    yield from ("", "### Waivers that match nothing any more", "")
    for waiver in report.unused_waivers:
        text = f"({waiver.subject}), until {waiver.expires}, by {waiver.owner}: {waiver.reason}"
        yield f"- {_code(waiver.check)} {escape(text)}"


def _drift(report: Report) -> Iterator[str]:
    drift = report.drift
    if drift is None or not (drift.changes or drift.unread):
        return
    yield from ("", "### Changed since the last green run", "")
    yield f"Recorded {escape(drift.recorded)} in {escape(drift.lock)}."
    yield ""
    if drift.changes:
        yield from ("| Fact | Then | Now | May explain |", "|---|---|---|---|")
    for change in drift.changes:
        explains = ", ".join(map(_code, change.explains)) or "-"
        cells = (change.fact, change.old or "nothing", change.new or "nothing")
        yield f"| {' | '.join(map(_cell, cells))} | {explains} |"
    if drift.unread:
        yield ""
    for text in drift.unread:
        yield f"- Not compared: {escape(text)}"


def _failures(report: Report) -> Iterator[str]:
    failed = failures(report)
    if not failed:
        return
    yield from ("", "### Failures")
    for result in failed:
        yield from ("", f"#### {_code(result.id)} ({result.severity.value})", "", f"Not so: {escape(result.title)}", "")
        yield f"Why: {escape(result.why)}"
        for judged in counting(result):
            yield from _finding(judged)
        yield from _unjudged(result)


def _finding(judged: JudgedFinding) -> Iterator[str]:
    finding = judged.finding
    yield from ("", f"- **{escape(finding.subject)}**")
    yield f"  - Observed: {escape(finding.observed)}"
    yield f"  - Expected: {escape(finding.expected)}"
    if judged.waiver:
        yield f"  - Its waiver expired on {judged.waiver.expires} ({escape(judged.waiver.owner)})"
    yield f"  - Fix ({finding.remedy.action.value}): {escape(finding.remedy.summary)}"
    yield from _fence(finding.remedy.commands)
    yield f"  - Rollback: {escape(rollback_words(finding.rollback))}"
    yield from _fence(finding.rollback.commands)


def _unjudged(result: Result) -> Iterator[str]:
    if result.unjudged:
        yield ""
    for item in result.unjudged:
        yield f"- Not judged: {escape(item.subject)}: {escape(item.reason)}"


def _decisions(report: Report) -> Iterator[str]:
    if not report.decisions:
        return
    yield from ("", "### Decided in advance", "")
    for decision in report.decisions:
        yield f"- {decision.action.capitalize()}: {', '.join(map(_code, decision.checks))}"
        if decision.criteria:
            yield f"  - Why: {escape(criteria_words(decision))}"
        if decision.decides:
            within = f", within {decision.within}" if decision.within else ""
            yield f"  - Decides: {escape(decision.decides + within)}"
        for number, step in enumerate(decision.steps, 1):
            yield f"  - Step {number}: {escape(step.summary)}"
            yield from _fence(step.commands)


def _fence(commands: Sequence[str]) -> Iterator[str]:
    """Commands as a block inside a list's entry, its fence longer than any run of backticks in them."""
    if not commands:
        return
    text = "\n".join(commands)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text) or [""]))
    yield ""
    for line in (f"{fence}sh", *text.split("\n"), fence):
        yield f"    {line}" if line else ""
    yield ""


def escape(text: str) -> str:
    """One line of text that Markdown shows as it is."""
    flat = " ".join(text.split())
    return _AT_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", flat))


def _cell(text: str) -> str:
    return escape(text) or "-"


def _code(identifier: str) -> str:
    return f"`{identifier}`"
