"""A preflight's report as text, and as a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kdoctor.engine.report import Report, Result
from kdoctor.model import Severity, Status
from kdoctor.report.formats import render
from kdoctor.report.phrases import reason_words, verdict_words
from kdoctor.text.sanitize import cleaned

# Colours that are told apart in light and in dark themes, beside words that say the same.
_COLOURS = {Status.PASS: "#2e7d32", Status.FAIL: "#c62828", Status.SKIP: "#757575", Status.UNKNOWN: "#b26a00"}
_CELL = "text-align:left;vertical-align:top;padding:4px 10px;white-space:normal;overflow-wrap:break-word"
_MARK = "text-align:left;vertical-align:top;padding:4px 10px;white-space:nowrap"
_ORDER = (Status.FAIL, Status.UNKNOWN, Status.PASS, Status.SKIP)


def text_of(report: Report) -> str:
    """The report as it stands in a terminal, without colours."""
    return render(report, "terminal").rstrip("\n")


def html_of(report: Report) -> str:
    """The report as one table: the verdict, then each check, failures first. It stands alone and runs nothing."""
    shown = cleaned(report)
    rows = sorted(shown.results, key=lambda result: (_ORDER.index(result.status), -result.severity.rank))
    heads = "".join(f'<th scope="col" style="{_CELL}">{head}</th>' for head in ("", "Check", "What was found"))
    caption = f'<caption style="{_CELL};caption-side:top"><b>{escape(verdict_words(shown))}</b>'
    return (
        f'<table class="kdoctor" style="border-collapse:collapse">{caption}<br>{escape(shown.target)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(_row(result) for result in rows)}</tbody></table>"
    )


def _row(result: Result) -> str:
    colour = "#b26a00" if result.status is Status.FAIL and result.severity is not Severity.ERROR else None
    word = result.severity.value if result.status is Status.FAIL else result.status.value
    mark = f'<b style="color:{colour or _COLOURS[result.status]}">{escape(word)}</b>'
    name = f"{escape(result.title)}<br><small><code>{escape(result.id)}</code></small>"
    cells = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in (name, "<br>".join(_found(result))))
    return f'<tr><td style="{_MARK}">{mark}</td>{cells}</tr>'


def _found(result: Result) -> Iterator[str]:
    for judged in result.findings:
        finding = judged.finding
        yield f"{escape(finding.subject)}: {escape(finding.observed)}"
        yield f"<i>Expected:</i> {escape(finding.expected)}"
        yield f"<i>Fix:</i> {escape(finding.remedy.summary)}"
    if result.status in (Status.SKIP, Status.UNKNOWN):
        yield escape(reason_words(result))
    if result.status is Status.PASS:
        yield from (f"{escape(evidence.subject)}: {escape(evidence.observed)}" for evidence in result.evidence)
