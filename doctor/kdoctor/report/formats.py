"""The table of formats."""

import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol

from kdoctor.engine.report import Report
from kdoctor.errors import UsageError
from kdoctor.plugins.installed import load, named, origin_of
from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.kinds import describe_kind
from kdoctor.text.sanitize import cleaned


class Renderer(Protocol):
    """Writes a report in one format. Pure: the same report and canvas give the same text."""

    def __call__(self, report: Report, canvas: Canvas) -> str:
        """The whole text, with its last line feed."""
        ...


_RENDERERS: Mapping[str, str] = {
    "terminal": "kdoctor.report.terminal.short:render_terminal",
    "json": "kdoctor.report.json:render_json",
    "junit": "kdoctor.report.junit:render_junit",
    "markdown": "kdoctor.report.markdown:render_markdown",
    "html": "kdoctor.report.html.write:render_html",
    "line": "kdoctor.report.line:render_line",
    "nagios": "kdoctor.report.nagios:render_nagios",
    "prometheus": "kdoctor.report.prometheus:render_prometheus",
    "github": "kdoctor.report.github:render_github",
    "fix-script": "kdoctor.report.fix_script:render_fix_script",
}
"""Name of a format to its :class:`Renderer`. A new format is one module and one line here."""

_INSTALLED = named("formats", _RENDERERS)

FORMATS: tuple[str, ...] = (*_RENDERERS, *_INSTALLED)
"""Names of the formats, those of plugins last."""


def render(report: Report, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """Write a report in a format of ``FORMATS``.

    Raises:
        KeyError: the format does not exist.
        UsageError: the plugin of the format cannot be imported, or gives no text.
    """
    renderer: Renderer
    renderer = load(_INSTALLED[format]) if format in _INSTALLED else pkgutil.resolve_name(_RENDERERS[format])
    text: object = renderer(cleaned(report), canvas)
    if not isinstance(text, str):
        raise UsageError(f"{origin_of(_INSTALLED[format])} returned {describe_kind(text)}, expected text")
    return text


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the JSON report."""
    schema: dict[str, Any] = pkgutil.resolve_name("kdoctor.report.json:report_schema")()
    return schema
