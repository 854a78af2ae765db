"""A preflight's report as text, and as a table for notebooks."""

from __future__ import annotations

from kdoctor.engine.report import Report
from kdoctor.report.formats import render
from kdoctor.report.html.write import render_notebook
from kdoctor.text.sanitize import cleaned


def text_of(report: Report) -> str:
    """The terminal report without colours."""
    return render(report, "terminal").rstrip("\n")


def html_of(report: Report) -> str:
    """The report as one HTML table, without scripts or references to other files."""
    return render_notebook(cleaned(report))
