"""The rules for patterns of known failures (``kdoctor.failures.pattern``)."""

import re
from collections.abc import Iterator

from kdoctor.failures.pattern import literals, tokens

_LEAST_LITERAL = 4
"""Bytes of the text by which a pattern is found."""
_MOST_REPEATS = 600
_RUNS = frozenset({r"\d", r"\w", r"\S"})


def problems_of(pattern: str) -> list[str]:
    """Why a pattern is not allowed; empty if it is."""
    try:
        parts = list(tokens(pattern))
        re.compile(pattern)
    except (ValueError, re.error) as error:
        return [f"{pattern!r}: {error}"]
    problems = []
    repeated: list[bool] = [False]  # whether a group, the innermost last, contains a repetition
    for number, (kind, text) in enumerate(parts):
        if kind == "open":
            repeated.append(False)
        elif kind == "close":
            inner = repeated.pop()
            follows = parts[number + 1] if number + 1 < len(parts) else ("", "")
            if inner and follows[0] == "repeat" and follows[1] != "?":
                problems.append("a repetition contains another one")
            repeated[-1] = repeated[-1] or inner
        elif kind == "repeat" and text != "?":
            repeated[-1] = True
            problems += _unbounded(text, parts[number - 1])
        elif kind == "special" and text == "|" and len(repeated) == 1:
            problems.append("alternatives are not in a group")
    if max((len(text.encode()) for text in literals(pattern)), default=0) < _LEAST_LITERAL:
        problems.append("no literal text of 4 bytes to search for")
    return [f"{pattern!r}: {problem}" for problem in problems]


def _unbounded(repeat: str, repeated: tuple[str, str]) -> Iterator[str]:
    kind, text = repeated
    if repeat[0] == "{":
        most = repeat.strip("{}?").rpartition(",")[2]
        if not most or int(most) > _MOST_REPEATS:
            yield f"{repeat} is more than {_MOST_REPEATS}"
    elif not (repeat in ("+", "+?") and (text in _RUNS or kind == "set")):
        yield f"{text}{repeat} is not bounded"
