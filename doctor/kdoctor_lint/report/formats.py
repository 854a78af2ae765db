"""Output formats of ``kdoctor lint``, one per file. Each renders a report as text."""

from collections.abc import Callable, Mapping

from kdoctor.text.canvas import Canvas
from kdoctor_lint.model import LintReport
from kdoctor_lint.report.github import render_github
from kdoctor_lint.report.json import render_json
from kdoctor_lint.report.sarif import render_sarif
from kdoctor_lint.report.terminal import render_terminal

FORMATS: Mapping[str, Callable[[LintReport, Canvas], str]] = {
    "terminal": render_terminal,
    "json": render_json,
    "sarif": render_sarif,
    "github": render_github,
}
"""The renderer of each format. The text ends with a line feed."""
