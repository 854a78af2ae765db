"""The formats of ``kdoctor diagnose`` by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name

from kdoctor.diagnose.model import Diagnosis
from kdoctor.text.canvas import PLAIN, Canvas

FORMATS: Mapping[str, str] = {
    "terminal": "kdoctor.diagnose.report.terminal:render_terminal",
    "json": "kdoctor.diagnose.report.json:render_json",
    "markdown": "kdoctor.diagnose.report.markdown:render_markdown",
    "html": "kdoctor.diagnose.report.html:render_html",
}
"""Name to the renderer, which is imported when it is used."""


def render(diagnosis: Diagnosis, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """The diagnosis in a format of ``FORMATS``."""
    renderer: Callable[[Diagnosis, Canvas], str] = resolve_name(FORMATS[format])
    return renderer(diagnosis, canvas)
