"""Whole numbers in texts of others."""

from __future__ import annotations

_MOST_DIGITS = 40
"""More than any counter has; ``int`` refuses thousands."""


def whole(text: str | None) -> int | None:
    """The number, if the text consists of ASCII digits; else None.

    ``str.isdigit`` is true for characters such as a superscript two, which ``int`` refuses.
    """
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
