"""The output device of a report: its width, and whether it shows colours."""

import os
from collections.abc import Mapping
from typing import TextIO

from kdoctor.records import record
from kdoctor.text.wrap import WIDTH

_NARROWEST, _WIDEST = 40, 120


SCREEN = 30
"""Lines that a short report or answer does not exceed."""


@record
class Canvas:
    """What a renderer for people may use."""

    width: int = WIDTH
    """Columns. Commands and paths are never broken, so a line may be longer."""
    colour: bool = False
    unicode: bool = True
    """Whether marks and lines may be other characters than ASCII. Names are always written as they are."""
    verbosity: int = 0
    """0 for one screen, 1 for every check, 2 with reasons and sources."""


PLAIN = Canvas()
"""A file or a log."""


def canvas_for(stream: TextIO | None, environ: Mapping[str, str]) -> Canvas:
    """The canvas of a stream. It is plain if the stream is closed (None) or not a terminal.

    ``COLUMNS`` sets the width, and ``NO_COLOR`` (https://no-color.org) forbids colours.
    """
    if stream is None:
        return PLAIN
    is_terminal = stream.isatty()
    columns = environ.get("COLUMNS", "")[:6]
    stated = int(columns) if columns.isascii() and columns.isdecimal() else 0
    width = stated or (_terminal_width(stream) if is_terminal else WIDTH)
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("_", "-")
    return Canvas(
        width=max(_NARROWEST, min(width, _WIDEST)),
        colour=is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb",
        # Python writes UTF-8 in the C locale, too, but a user who sets that locale asks for ASCII.
        unicode=encoding.startswith("utf") and environ.get("LC_ALL") not in ("C", "POSIX"),
    )


def _terminal_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH
