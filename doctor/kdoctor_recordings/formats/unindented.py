"""Finds the headings of an entry of ``nvidia-smi -q`` in output that lost its indentation, or its line breaks.

Issue trackers and chats remove leading spaces. The paths that become facts then decide what a line belongs to. An entry
that may belong to several headings keeps the last one, where it is not read.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from kdoctor_recordings.formats.gpu_fields import PROCESS, READ, is_entry, is_heading

_NAMES = Counter(path.rpartition("/")[2] for path in READ)
HEADINGS = {path[:place] for path in READ for place, letter in enumerate(path) if letter == "/"}
"""The paths of headings that have values below them which become facts."""
SEGMENTS = {name for path in READ for name in path.split("/")}
"""The names of these headings, and of the entries."""

_DRIVER = {"driver version", "cuda version", "cuda umd version", "kmd version", "attached gpus"}
_VALUE = re.compile(
    r"(?:-?[\d.]+(?: (?:[KMG]i?B(?:/s)?|MHz|W|C|[mu]?s)\b| %|x\b)?|\w+-[\w-]{30,}|[\da-fA-F:.x]*\d[\da-fA-F:.x]*|P\d+"
    r"|N/A|None|Yes|No|Enabled|Disabled|(?:Not )?Active|Default|Unknown Error|GPU is lost|ERR!)(?= |$)"
)
"""A value that is recognized by its form. Others, such as a name, end where a known name begins."""
_TITLE = re.compile(r"=+NVSMI LOG=+|GPU [\dA-Fa-f]{4,8}:[\dA-Fa-f]{2}:[\dA-Fa-f]{2}\.\d")
_FEWEST = 3
"""Entries in a line that has several."""

Headings = tuple[str, ...]
"""The headings above a line, the outermost first."""


def headings_below(above: Headings, name: str) -> Headings:
    """The headings of the lines that follow a heading.

    Args:
        above: the headings of the line before it.
        name: its name, as in a path.
    """
    # The entries of a MIG device have the names of the GPU's.
    fewest = 1 if above and above[0].startswith("mig device") else 0
    for kept in range(len(above), fewest - 1, -1):
        if "/".join((*above[:kept], name)) in HEADINGS:
            return (*above[:kept], name)
    if not fewest and is_heading(name):
        return (name,)
    if is_entry("/".join((*above[:1], name, "x"))):
        return (*above[:1], name)
    return (*above, name) if above else ()


def headings_of(above: Headings, name: str) -> Headings:
    """The headings of an entry, of those above it."""
    if above == ("processes",) and name in PROCESS:
        return above
    is_known = "/".join(above) in HEADINGS or _NAMES[name] == 1
    kept = [place for place in range(len(above), -1, -1) if is_known or place in (0, len(above))]
    paths = {place: "/".join((*above[:place], name)) for place in kept}
    read = (place for place, path in paths.items() if path in READ)
    others = (place for place, path in paths.items() if is_entry(path))
    return above[: next(read, next(others, len(above)))]


def with_lines(line: str) -> str:
    """The entries that lost their line breaks, each in a line. Of the words between two colons the value comes first.

    Where it ends is known from its form, or from the name that follows. If neither is, the entries stay one line.
    """
    first, *others = " ".join(line.split()).split(" : ")
    if len(others) < _FEWEST or sum(_name_in(piece) in _NAMES for piece in (first, *others[:-1])) < _FEWEST:
        return line
    named = _after_text(first)
    lines = [first.removesuffix(named), *_headed(named)]
    for piece in others[:-1]:
        value = _VALUE.match(piece)
        named = piece[value.end() :].strip() if value else _after_text(piece)
        lines[-1] += f" : {piece.removesuffix(named).strip()}"
        lines += _headed(named) if named else []
    return "\n".join(lines) + f" : {others[-1]}"


@lru_cache(maxsize=1024)
def _is_name(text: str) -> bool:
    name = text.lower().replace("-", "")
    return name in SEGMENTS or name in PROCESS or name in _DRIVER or is_entry(name) or is_heading(name)


def _suffix(words: list[str]) -> int:
    """The place in the words where the longest known name begins that ends them; their number if none does."""
    return next((place for place in range(len(words)) if _is_name(" ".join(words[place:]))), len(words))


def _name_in(piece: str) -> str:
    words = piece.split()
    return " ".join(words[_suffix(words) :]).lower()


def _after_text(piece: str) -> str:
    """The headings and the name that follow a text."""
    words = piece.split()
    end = start = _suffix(words)
    while start and (before := _suffix(words[:start])) < start:
        start = before
    return " ".join(words[start if end < len(words) else end :])


def _headed(text: str) -> Iterator[str]:
    """The headings in front of a name, and the name."""
    words = text.split()
    title = _TITLE.match(text)
    starts = [] if _is_name(text) else [" ".join(words[:end]) for end in range(len(words) - 1, 0, -1)]
    first = title[0] if title else next(filter(_is_heading, starts), "")
    if first:
        yield first
    yield from _headed(text[len(first) :].strip()) if first else (text,)


def _is_heading(text: str) -> bool:
    return is_heading(text) or any(text.lower() in path.split("/") for path in HEADINGS)
