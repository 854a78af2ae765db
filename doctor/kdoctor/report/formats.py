"""The table of formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kdoctor.engine.report import Report
from kdoctor.report.github import render_github
from kdoctor.report.html.write import render_html
from kdoctor.report.json import render_json
from kdoctor.report.json import report_schema as schema
from kdoctor.report.junit import render_junit
from kdoctor.report.line import render_line
from kdoctor.report.markdown import render_markdown
from kdoctor.report.nagios import render_nagios
from kdoctor.report.prometheus import render_prometheus
from kdoctor.report.terminal import render_terminal
from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.sanitize import cleaned


class Renderer(Protocol):
    """Writes a report in one format. Pure: the same report and canvas give the same text."""

    def __call__(self, report: Report, canvas: Canvas) -> str:
        """The whole text, with its last line feed."""
        ...


# Each format's module is imported when it is used: a run that prints JSON has no use for rich.
def _terminal(report: Report, canvas: Canvas) -> str:
    return render_terminal(report, canvas)


def _json(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_json(report)


def _junit(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_junit(report)


def _markdown(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - its reader's browser is the canvas

    return render_markdown(report)


def _line(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - one line is one line

    return render_line(report)


def _nagios(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_nagios(report)


def _prometheus(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_prometheus(report)


def _github(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    return render_github(report)


def _html(report: Report, canvas: Canvas) -> str:  # noqa: ARG001 - its reader's browser is the canvas

    return render_html(report)


_RENDERERS: Mapping[str, Renderer] = {
    "terminal": _terminal,
    "json": _json,
    "junit": _junit,
    "markdown": _markdown,
    "html": _html,
    "line": _line,
    "nagios": _nagios,
    "prometheus": _prometheus,
    "github": _github,
}

FORMATS: tuple[str, ...] = tuple(_RENDERERS)
"""Names of the formats."""


def render(report: Report, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """Write a report in a format of ``FORMATS``.

    Raises:
        KeyError: there is no such format.
    """
    return _RENDERERS[format](cleaned(report), canvas)


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the JSON report."""
    return schema()
