"""Renders the answer of ``kdoctor matrix`` for a terminal, as Markdown and as JSON."""

from collections.abc import Callable, Mapping

from kdoctor.matrix.json import render_json
from kdoctor.matrix.markdown import render_markdown
from kdoctor.matrix.terminal import render_terminal
from kdoctor.matrix.view import View
from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.sanitize import clean


def render(view: View, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """The view in one of ``FORMATS``.

    Raises:
        KeyError: unknown format.
    """
    text = _RENDERERS[format](view, canvas)
    return text if format == "json" else clean(text)


_RENDERERS: Mapping[str, Callable[[View, Canvas], str]] = {
    "terminal": render_terminal,
    "json": lambda view, _: render_json(view),
    "markdown": lambda view, _: render_markdown(view),
}
FORMATS: tuple[str, ...] = tuple(_RENDERERS)
"""Names of the formats."""
