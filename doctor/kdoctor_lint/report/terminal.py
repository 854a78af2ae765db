"""The report for people: each place on lines of its own, then each rule that has something to say, once."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor.text.canvas import Canvas
from kdoctor.text.sanitize import clean
from kdoctor_lint.model import LintFinding, LintReport, Rule
from kdoctor_lint.report.words import code, one_line, summary

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}


def render_terminal(report: LintReport, canvas: Canvas) -> str:
    """The report as text of the canvas's width; places and code are never broken."""
    lines: list[str] = []
    for finding in report.findings:
        lines += [*_place(finding, canvas), ""]
    rules = {finding.rule.id: finding.rule for finding in report.findings}
    for rule in rules.values():
        lines += [*_rule(rule, canvas), ""]
    lines += [clean(note) for note in report.notes]
    lines.append(_coloured(summary(report), "1", canvas))
    text = "\n".join([*lines, ""])
    return text if canvas.unicode else text.encode("ascii", "backslashreplace").decode("ascii")


def _place(finding: LintFinding, canvas: Canvas) -> Iterator[str]:
    severity = _coloured(finding.severity.value, _COLOURS[finding.severity], canvas)
    yield f"{clean(str(finding.spot))}: {severity}: {finding.rule.id}"
    yield from _wrapped(clean(finding.message), "  ", canvas)
    if finding.source:
        yield f"    {_coloured(clean(finding.source), '2', canvas)}"


def _rule(rule: Rule, canvas: Canvas) -> Iterator[str]:
    yield _coloured(rule.id, "1", canvas)
    yield from _wrapped(rule.title, "  ", canvas)
    yield from _wrapped(f"Why: {one_line(rule.why)}", "  ", canvas)
    yield "  Write:"
    yield from code(rule.good, "      ")


def _wrapped(text: str, indent: str, canvas: Canvas) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        canvas.width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _coloured(text: str, style: str, canvas: Canvas) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if canvas.colour else text
