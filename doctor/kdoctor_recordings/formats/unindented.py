"""Finds the headings of an entry of ``nvidia-smi -q`` in output that lost its indentation.

Issue trackers and chats remove leading spaces. The paths that become facts then decide what a line belongs to. An entry
that may belong to several headings keeps the last one, where it is not read.
"""

from collections import Counter

from kdoctor_recordings.formats.gpu_fields import PROCESS, READ, is_entry, is_heading

_NAMES = Counter(path.rpartition("/")[2] for path in READ)
HEADINGS = {path[:place] for path in READ for place, letter in enumerate(path) if letter == "/"}
"""The paths of headings that have values below them which become facts."""
SEGMENTS = {name for path in READ for name in path.split("/")}
"""The names of these headings, and of the entries."""

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
