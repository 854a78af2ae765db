"""Annotations of GitHub Actions: workflow commands that show findings beside the lines of a pull request."""

from __future__ import annotations

from kdoctor.model import Severity
from kdoctor.text.sanitize import clean
from kdoctor_lint.model import LintFinding, LintReport
from kdoctor_lint.report.words import summary

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_github(report: LintReport) -> str:
    """One command a finding, and a last line for the log."""
    return "\n".join([*(_annotation(finding) for finding in report.findings), summary(report), ""])


def _annotation(finding: LintFinding) -> str:
    spot = finding.spot
    properties = {"title": finding.rule.id}
    message = f"{clean(finding.message)}. {finding.rule.title}"
    if spot.path != "-":
        properties["file"] = spot.path
    if spot.cell:
        # The lines of a cell are not the lines of the notebook's file.
        message = f"cell {spot.cell}, line {spot.line}: {message}"
    else:
        properties |= {"line": str(spot.line), "endLine": str(spot.end_line)}
        if spot.line == spot.end_line:
            # Columns are ignored, with a warning, where the place spans lines.
            properties |= {"col": str(spot.column), "endColumn": str(spot.end_column)}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """As the runner reads the part after the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
