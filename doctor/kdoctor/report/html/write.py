"""The sections of the HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from kdoctor.engine.report import JudgedFinding, Report, Result, Training
from kdoctor.model import Status
from kdoctor.report.html.charts import LINK_WORDS, gpu_drawing, link_kind, loss_chart, loss_words, step_chart
from kdoctor.report.html.gpu_work import gpu_work_sections
from kdoctor.report.html.style import STYLE
from kdoctor.report.phrases import (
    FAMILY_TITLES,
    STATUS_WORDS,
    by_family,
    counting,
    criteria_words,
    failures,
    reason_words,
    rollback_words,
    seconds,
    waived,
)


def render_html(report: Report) -> str:
    """The report as one HTML file. Its policy forbids scripts and every request to elsewhere."""
    verdict = report.verdict.conclusion.value
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>kdoctor: {verdict.upper()} ({escape(report.checklist.name)})</title>\n"
        f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(_sections(report)) + "\n</body>\n</html>\n"


def _sections(report: Report) -> Iterator[str]:
    yield from _head(report)
    yield from _decisions(report)
    yield from _failures(report)
    yield from _drift(report)
    yield from _waivers(report)
    yield from _checklist(report)
    yield from _trainings(report)
    yield from gpu_work_sections(report)
    yield from _gpus(report)


def _head(report: Report) -> Iterator[str]:
    verdict = report.verdict.conclusion.value
    yield f'<header class="card {verdict}"><p class="dim">May this job start here?</p>'
    yield f"<h1>{_mark(verdict)} {escape(_sentence(report.verdict.reason))}</h1>"
    took = f'<li class="dim">in {seconds(report.duration_s)}</li>'
    yield f'<ul class="counts">{"".join(_chips(report.results))}{took}</ul>'
    if report.interrupted:
        yield "<p><strong>The run was interrupted: what is missing says nothing.</strong></p>"
    checklist = f"{report.checklist.name}, version {report.checklist.version}"
    told = [("Target", report.target), ("Checklist", checklist), ("Started", _instant(report.started_at))]
    if report.last_green_at:
        told.append(("Last green", _instant(report.last_green_at)))
    yield _terms([(label, text) for label, text in told if text])
    yield "</header>"


def _sentence(text: str) -> str:
    """With a capital, unless it starts with a check's id."""
    return text if "." in text.split(" ", maxsplit=1)[0] else text[:1].upper() + text[1:]


def _instant(text: str) -> str:
    """An instant in ISO 8601, as people write it."""
    return text.replace("T", " ").replace("+00:00", " UTC").removesuffix("Z")


def _chips(results: Sequence[Result]) -> Iterator[str]:
    """How many there are of each status; none of what there is none of."""
    for status, word in STATUS_WORDS.items():
        number = sum(result.status is status for result in results)
        if number:
            yield f'<li class="{status.value}">{number} {word}</li>'


def _decisions(report: Report) -> Iterator[str]:
    if report.decisions:
        yield "<h2>Decided in advance</h2>"
    for decision in report.decisions:
        yield '<section class="card">'
        yield f"<h3>{escape(decision.action.capitalize())}: {_codes(decision.checks)}</h3>"
        within = f", within {decision.within}" if decision.within else ""
        told = [("Why", criteria_words(decision))] if decision.criteria else []
        yield _terms([*told, ("Decides", decision.decides + within)] if decision.decides else told)
        for number, step in enumerate(decision.steps, 1):
            yield f"<p>Step {number}: {escape(step.summary)}</p>{_commands(step.commands)}"
        yield "</section>"


def _failures(report: Report) -> Iterator[str]:
    failed = failures(report)
    if failed:
        yield "<h2>Failures</h2>"
    for result in reversed(failed):
        yield f'<section class="card fail" id="{escape(result.id)}">'
        yield f"<h3>Not so: {escape(result.title)}</h3>"
        yield f'<p class="dim"><code>{escape(result.id)}</code>, {result.severity.value}</p>'
        yield f"<p>{escape(result.why)}</p>"
        for judged in counting(result):
            yield from _finding(judged)
        yield _terms([("Not judged", f"{item.subject}: {item.reason}") for item in result.unjudged])
        yield "</section>"


def _finding(judged: JudgedFinding) -> Iterator[str]:
    finding = judged.finding
    told = [("Subject", finding.subject), ("Observed", finding.observed), ("Expected", finding.expected)]
    if judged.waiver:
        told.append(("Waiver", f"expired on {judged.waiver.expires} ({judged.waiver.owner}): {judged.waiver.reason}"))
    yield _terms(told)
    yield f"<p><strong>Fix</strong> ({finding.remedy.action.value}): {escape(finding.remedy.summary)}</p>"
    yield _commands(finding.remedy.commands)
    yield f"<p><strong>Rollback</strong>: {escape(rollback_words(finding.rollback))}</p>"
    yield _commands(finding.rollback.commands)


def _drift(report: Report) -> Iterator[str]:
    drift = report.drift
    if drift is None:
        return
    yield "<h2>Changed since the last green run</h2>"
    yield f'<p class="dim">Recorded {escape(_instant(drift.recorded))} in <code>{escape(drift.lock)}</code>.</p>'
    if not (drift.changes or drift.unread):
        yield "<p>Nothing that was recorded.</p>"
    rows = [
        (escape(change.fact), escape(change.old or "nothing"), escape(change.new or "nothing"), _codes(change.explains))
        for change in drift.changes
    ]
    yield from _table(("Fact", "Then", "Now", "May explain"), rows, stacks=True)
    yield _terms([("Not compared", text) for text in drift.unread])


def _waivers(report: Report) -> Iterator[str]:
    found = waived(report)
    if found:
        yield "<h2>Waived</h2>"
    for result, judged in found:
        if judged.waiver:
            agreement = f"until {judged.waiver.expires}, by {judged.waiver.owner}: {judged.waiver.reason}"
            yield '<section class="card">'
            yield f"<h3><code>{escape(result.id)}</code></h3>"
            seen = [("Subject", judged.finding.subject), ("Observed", judged.finding.observed), ("Waiver", agreement)]
            yield f"{_terms(seen)}</section>"
    if report.unused_waivers:
        yield "<h2>Waivers that match nothing any more</h2>"
    for waiver in report.unused_waivers:
        text = f"({waiver.subject}), until {waiver.expires}, by {waiver.owner}: {waiver.reason}"
        yield f"<p><code>{escape(waiver.check)}</code> {escape(text)}</p>"


def _checklist(report: Report) -> Iterator[str]:
    yield "<h2>Checklist</h2>"
    for family, results in by_family(report.results):
        yield f'<h3 class="family">{FAMILY_TITLES[family]}<ul class="counts">{"".join(_chips(results))}</ul></h3>'
        for reason, group in groupby(results, key=lambda item: item.reason if item.status is Status.SKIP else None):
            members = list(group)
            if reason is None or len(members) == 1:
                yield from (line for result in members for line in _result(result))
            else:
                yield from _skipped(reason, members)


def _skipped(reason: str, results: Sequence[Result]) -> Iterator[str]:
    """Neighbours that were skipped for one reason, told together."""
    yield f"<details><summary>{_mark('skip')} <span>{len(results)} checks: {escape(reason)}</span></summary><ul>"
    yield from (f"<li>{escape(result.title)} <code>{escape(result.id)}</code></li>" for result in results)
    yield "</ul></details>"


def _result(result: Result) -> Iterator[str]:
    status = result.status.value
    yield f"<details><summary>{_mark(status)} <span>{escape(result.title)}</span></summary><div>"
    yield f'<p class="dim"><code>{escape(result.id)}</code>, {result.severity.value}</p>'
    if status in ("skip", "unknown"):
        yield f"<p>{escape(reason_words(result))}</p>"
    if status == "fail":
        yield f'<p><a href="#{escape(result.id)}">What was found, and the ways out</a></p>'
    yield _terms([(item.subject, item.observed) for item in result.evidence])
    yield "</div></details>"


def _trainings(report: Report) -> Iterator[str]:
    if not report.trainings:
        return
    yield "<h2>Smoke trainings</h2>"
    expected = {note.id: f"{note.kind}. Expected: {note.expect}" for note in report.scenarios}
    for scenario, cases in groupby(report.trainings, key=lambda item: item.scenario):
        yield f'<h3><code>{escape(scenario)}</code></h3><p class="dim">{escape(expected.get(scenario, ""))}</p>'
        yield '<div class="charts">'
        for training in cases:
            yield f"<figure><figcaption>{_caption(training)}</figcaption>"
            yield (loss_chart(training) if training.losses else "") + "</figure>"
        yield "</div>"
    if any(item.step_s is not None for item in report.trainings):
        yield "<h3>Median time of a step</h3>"
        yield f'<div class="charts"><figure>{step_chart(report.trainings)}</figure></div>'


def _caption(training: Training) -> str:
    replicas = "" if training.replicas is None else f" on {training.replicas} x {training.devices}"
    losses = f": losses {loss_words(training.losses)}" if training.losses else ""
    dashed = "; dashed: one device" if training.reference_losses else ""
    return f"{escape(training.case)} {escape(training.outcome)}{replicas}{losses}{dashed}"


def _gpus(report: Report) -> Iterator[str]:
    if not report.gpus:
        return
    yield '<h2>GPUs and what connects them</h2><div class="charts"><figure>'
    yield f"{gpu_drawing(report)}</figure><figure>"
    for name, members in groupby(report.gpus, key=lambda gpu: gpu.name):
        indices = [gpu.index for gpu in members]
        span = f"GPU {indices[0]}" + (f" to {indices[-1]}" if len(indices) > 1 else "")
        yield f"<p>{span}: {escape(name)}</p>"
    kinds = dict.fromkeys(link_kind(link) for link in report.gpu_links)
    for kind in (kind for kind in LINK_WORDS if kind in kinds):
        line = f'<svg viewBox="0 0 60 12" aria-hidden="true"><line class="{kind}" x1="0" y1="6" x2="60" y2="6"/></svg>'
        yield f'<p class="legend">{line}<span>{LINK_WORDS[kind]}</span></p>'
    yield "</figure></div>"
    labels = {frozenset((link.first, link.second)): link.label for link in report.gpu_links}
    rows = [
        (
            f"<b>GPU {one.index}</b>{' (lost)' if one.lost else ''}",
            *(
                "-" if one is other else escape(labels.get(frozenset((one.index, other.index)), "?"))
                for other in report.gpus
            ),
        )
        for one in report.gpus
    ]
    yield from _table(("", *(f"{gpu.index}" for gpu in report.gpus)), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, stacks: bool = False) -> Iterator[str]:
    """A table whose cells are HTML. One that stacks has its rows as cards on a phone, each cell with its heading."""
    if not rows:
        return
    kind = ' class="stacks"' if stacks else ""
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    yield f'<div class="wide"><table{kind}><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        cells = (f'<td data-head="{label}"><span>{cell}</span></td>' for label, cell in zip(head, row, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _mark(status: str) -> str:
    return f'<span class="mark {status}">{status.upper()}</span>'


def _terms(told: Sequence[tuple[str, str]]) -> str:
    entries = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in told)
    return f"<dl>{entries}</dl>" if entries else ""


def _commands(commands: Sequence[str]) -> str:
    return f"<pre>{escape(chr(10).join(commands))}</pre>" if commands else ""


def _codes(names: Sequence[str]) -> str:
    return ", ".join(f"<code>{escape(name)}</code>" for name in names) or "-"
