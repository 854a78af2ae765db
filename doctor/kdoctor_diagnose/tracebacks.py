"""Finds the exception with which a traceback ends, whatever its name is. It is pure."""

import re
from collections.abc import Sequence

from kdoctor.text.sanitize import clean
from kdoctor_diagnose.line import Line, split

TITLE = b"Traceback (most recent call last)"
_MOST_LINES = 400
"""Lines after the title among which its end is looked for."""
_LONGEST = 4000
_FRAME = re.compile(r"[\s│┃╭╰|+]")
"""How each line before the exception begins: frames, code, and the box that rich draws around them."""
_NAME = r"[A-Za-z_][\w.]{1,120}"
_EXCEPTION = re.compile(rf"{_NAME}(?:: |:?$)")
_JUPYTER = re.compile(rf"(?P<name>{_NAME}) +Traceback \(most recent call last\)")
"""IPython's title names the exception. Its frames are not indented."""


def exception_after(title: str, lines: Sequence[bytes], first: int) -> tuple[int, Line] | None:
    """The line with the exception of a traceback, among those of the same process, and its place in ``lines``.

    Args:
        title: the line ``Traceback (most recent call last):``.
        lines: lines of the log.
        first: the place of the line after the title.
    """
    head = split(title)
    named = _JUPYTER.match(head.text)
    for place in range(first, min(first + _MOST_LINES, len(lines))):
        line = split(clean(lines[place][:_LONGEST].decode("utf-8", "replace")))
        if line.rank != head.rank or not line.text:
            continue
        if named:
            if re.match(rf"{re.escape(named['name'])}(?:: |:?$)", line.text):
                return place, line
        elif not _FRAME.match(line.text):
            return (place, line) if _EXCEPTION.match(line.text) else None
    return None
