"""The formats of ``kdoctor diagnose`` by name."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name

from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor_diagnose.model import Diagnosis

FORMATS: Mapping[str, str] = {
    "terminal": "kdoctor_diagnose.report.terminal:render_terminal",
    "json": "kdoctor_diagnose.report.formats:render_json",
    "markdown": "kdoctor_diagnose.report.markdown:render_markdown",
    "html": "kdoctor_diagnose.report.html:render_html",
}
"""Name to the renderer, which is imported when it is used."""


def render_json(diagnosis: Diagnosis, canvas: Canvas) -> str:
    """The document (``kdoctor schema diagnosis``)."""
    return diagnosis.to_json()


def render(diagnosis: Diagnosis, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """The diagnosis in a format of ``FORMATS``."""
    renderer: Callable[[Diagnosis, Canvas], str] = resolve_name(FORMATS[format])
    return renderer(diagnosis, canvas)
