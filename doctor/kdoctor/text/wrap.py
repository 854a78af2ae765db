"""Wrapped paragraphs for terminals."""

import re
from collections.abc import Iterator

from rich.cells import cell_len

WIDTH = 80
"""Columns of a report that does not know its terminal."""
_WORD = re.compile(r"(?:`[^`\n]{1,60}`|\S)+(?: \.\.\.(?!\S))?")
"""A command in backticks can be pasted only if it is on one line. The mark of a cut text stays with its last word."""


def wrap(text: str, width: int = WIDTH, *, first: str = "", rest: str | None = None, lines: bool = False) -> list[str]:
    """The lines of a paragraph, broken between words only: a path or a `command` stays whole, however long.

    Args:
        text: what to wrap.
        width: columns of a whole line. Wide characters take two.
        first: what the first line begins with.
        rest: what the other lines begin with; the same as ``first`` if omitted.
        lines: keep the text's own line breaks and indentation, as in a Python stack. Otherwise any white space
            counts as one space.
    """
    if not lines and len(first) + len(text) <= width and (first + text).isascii():  # most paragraphs
        words = text.split()
        return [first + " ".join(words)] if words else []
    rest = first if rest is None else rest
    wrapped: list[str] = []
    for line in text.expandtabs(4).splitlines() if lines else [text]:
        words = _WORD.findall(line)
        current = (rest if wrapped else first) + (line[: len(line) - len(line.lstrip())] if lines else "")
        is_empty = True
        for word in words:
            if not is_empty and cell_len(current) + 1 + cell_len(word) > width:
                wrapped.append(current)
                current, is_empty = rest, True
            current += word if is_empty else f" {word}"
            is_empty = False
        if words or lines:
            wrapped.append(current.rstrip())
    return wrapped


def command_lines(command: str, width: int = WIDTH) -> list[str]:
    """A shell command, broken with backslashes where it is wider than a line and the shell allows it."""
    indent = " " * 4
    lines, current, begin = [], indent, 0
    for end in (*_breaks(command), len(command)):
        word = command[begin:end]
        if current.strip() and cell_len(current) + 1 + cell_len(word) > width - len(" \\"):
            lines.append(f"{current} \\")
            current = indent
        current += f" {word}" if current.strip() else word
        begin = end + 1
    return [*lines, current]


def _breaks(command: str) -> Iterator[int]:
    """The spaces between the words of a command, also of one in ``"$(...)"``."""
    within = [""]
    for place, (before, letter) in enumerate(zip(f" {command}", command, strict=False)):
        if letter == within[-1] != "" and before != "\\":
            within.pop()
        elif within[-1] == "'" or before == "\\":
            continue
        elif letter == "(" and before == "$":
            within.append(")")
        elif letter == '"' or (letter == "'" and within[-1] != '"'):
            within.append(letter)
        elif letter == " " and within[-1] in ("", ")"):
            yield place


def shorten(text: str, width: int) -> str:
    """The text, cut at a word and ended by ``...`` if it is wider than ``width`` columns."""
    if cell_len(text) <= width:
        return text
    kept = text
    while kept and cell_len(kept) > width - len(" ..."):
        kept = kept.rpartition(" ")[0] or kept[: max(0, len(kept) - 1)]
    return f"{kept.rstrip(' .,;:')} ..."


def is_cut(text: str) -> bool:
    """Whether :func:`shorten` cut the text, or a part of it."""
    return " ..." in text


def first_sentence(text: str) -> str:
    """The text up to the first full stop that ends a sentence."""
    return re.split(r"(?<=[.!?]) (?=[A-Z])", " ".join(text.split()), maxsplit=1)[0]
