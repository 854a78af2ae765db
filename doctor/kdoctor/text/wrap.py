"""Wrapped paragraphs for terminals."""

from __future__ import annotations

import textwrap

WIDTH = 80
"""Columns of a report that does not know its terminal."""


def wrap(text: str, width: int = WIDTH, *, first: str = "", rest: str | None = None) -> list[str]:
    """The lines of a paragraph. A word that is longer than a line (a path, a command) is not broken.

    Args:
        text: any white space between words counts as one space.
        width: columns of a whole line.
        first: what the first line begins with.
        rest: what the other lines begin with; the same as ``first`` if omitted.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def to_ascii(text: str) -> str:
    """The text with every other character escaped, for a stream that is not UTF-8."""
    return text.encode("ascii", "backslashreplace").decode("ascii")
