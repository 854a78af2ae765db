"""Finds the few lines of a log that can have a pattern, with one regular expression over whole blocks.

Each pattern is found by a short piece of its text, its trigger. Triggers begin with letters that are rare in logs, so
that the search skips most of a block.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kdoctor.failures.pattern import literals

_ORDER = " 0123456789=.━eatsonrlicp/:-dmu_hgf,bykvw()[]'\"<>*|ISEACTPRDFNLGMWOUBVxzHjqKYJQXZ%;{`"
"""Characters of logs, the most frequent first."""
_FREQUENT = {letter: math.exp(-place / 8) for place, letter in enumerate(_ORDER)}
_FIRST_COUNTS = 8.0
"""How much more the first letter counts than the others: where it is not, the search goes on at once."""
_LEAST, _MOST = 5, 12

_Tree: TypeAlias = "dict[str, _Tree]"


def trigger_of(pattern: str) -> str:
    """The piece of a pattern's text by which it is found."""
    least = min(_LEAST, max(map(len, literals(pattern))))
    return min(piece for text in literals(pattern) for piece in _pieces(text, least))[1]


def _pieces(text: str, least: int) -> Iterator[tuple[float, str]]:
    """The pieces of a text, each after what the search for it costs."""
    frequent = [_FREQUENT.get(letter, 0.0) for letter in text]
    for start in range(len(text) - least + 1):
        part = frequent[start : start + _MOST]
        yield _FIRST_COUNTS * part[0] + sum(part) / len(part) ** 2, text[start : start + _MOST]


def compile_triggers(triggers: Iterable[str]) -> re.Pattern[bytes]:
    """An expression that finds any of the triggers."""
    tree: _Tree = {}
    for trigger in triggers:
        place = tree
        for letter in trigger:
            place = place.setdefault(letter, {})
        place[""] = {}
    return re.compile(_expression(tree).encode())


def _expression(tree: Mapping[str, _Tree]) -> str:
    """A trigger ends the search for longer ones with the same beginning."""
    if "" in tree:
        return ""
    branches = [re.escape(letter) + _expression(rest) for letter, rest in tree.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
