"""Renderers of the linter's report: one output format a file, each a pure function of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor_lint.model import LintReport
from kdoctor_lint.report.github import render_github
from kdoctor_lint.report.json import render_json
from kdoctor_lint.report.sarif import render_sarif
from kdoctor_lint.report.terminal import render_terminal


def _terminal(report: LintReport, canvas: Canvas) -> str:
    return render_terminal(report, canvas)


def _json(report: LintReport, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_json(report)


def _sarif(report: LintReport, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_sarif(report)


def _github(report: LintReport, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_github(report)


_RENDERERS: Mapping[str, Callable[[LintReport, Canvas], str]] = {
    "terminal": _terminal,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}

FORMATS: tuple[str, ...] = tuple(_RENDERERS)
"""Names of the formats."""


def render(report: LintReport, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """Write a report in a format of ``FORMATS``.

    Raises:
        KeyError: there is no such format.
    """
    return _RENDERERS[format](report, canvas)
