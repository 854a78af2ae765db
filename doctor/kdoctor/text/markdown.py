"""Text inside Markdown."""

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~&$!])")
_AT_START = re.compile(r"^(?:\d+(?=[.)](?: |$))|(?=[-+=]))")
"""What would begin a list or underline a heading."""
_REFERENCE = re.compile(r"(?:(?<![\w`])@(?=[A-Za-z0-9])|\\#(?=\d))")
"""A user or an issue, which GitHub would notify or link even after a backslash. A character of no width prevents it."""


def escape(text: str) -> str:
    """One line of text that Markdown shows as it is."""
    flat = " ".join(text.split())
    return _REFERENCE.sub(r"\g<0>&#8203;", _AT_START.sub(r"\g<0>\\", _SPECIAL.sub(r"\\\1", flat)))
