"""Chooses the short or the full report."""

from kdoctor.engine.report import Report
from kdoctor.report.terminal.full import render_full
from kdoctor.report.terminal.short import render_short
from kdoctor.text.canvas import Canvas


def render_terminal(report: Report, canvas: Canvas) -> str:
    """The report as text of the canvas's width. Commands and paths are never broken.

    With verbosity 0 it is one screen: the families in one line each, the causes, and the verdict. From 1 on it has
    every check, and from 2 on also reasons and sources.
    """
    return render_full(report, canvas, canvas.verbosity) if canvas.verbosity else render_short(report, canvas)
