"""Annotations of GitHub Actions: workflow commands that show findings next to the lines of a pull request."""

from kdoctor.model import Severity
from kdoctor.report.github import command
from kdoctor.text.canvas import Canvas
from kdoctor.text.sanitize import clean
from kdoctor_lint.model import Finding, LintReport
from kdoctor_lint.report.terminal import summary

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_github(report: LintReport, _: Canvas) -> str:
    """One command per finding, and a last line for the log."""
    return "\n".join([*(_annotation(finding) for finding in report.findings), summary(report), ""])


def _annotation(finding: Finding) -> str:
    spot = finding.spot
    properties: dict[str, object] = {"title": f"{finding.rule.code} {finding.rule.id}"}
    message = clean(f"{finding.message}. {finding.fix}")
    if spot.path != "-":
        properties["file"] = clean(spot.path)
    if spot.cell:
        # The lines of a cell are not the lines of the notebook's file.
        message = f"cell {spot.cell}, line {spot.line}: {message}"
    else:
        properties |= {"line": spot.line, "endLine": spot.end_line}
        if spot.line == spot.end_line:
            # For ranges of several lines, GitHub ignores columns with a warning.
            properties |= {"col": spot.column, "endColumn": spot.end_column}
    return command(_COMMANDS[finding.rule.severity], message, **properties)
