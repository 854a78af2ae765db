"""Finds the few lines of a log that can have a pattern, with one regular expression over whole blocks.

Each pattern is found by a short piece of its text, its trigger. Triggers begin with letters that are rare in logs, so
that the search skips most of a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kdoctor.failures.pattern import literals

_ORDER = " 0123456789=.━eatsonrlicp/:-dmu_hgf,bykvw()[]'\"<>*`T|ISEACPRDFNLGMWOUBVxzHjqKYJQXZ"
"""Characters of logs, the most frequent first."""
_COST = {letter: place for place, letter in enumerate(reversed(_ORDER))}
_RARE = {letter: cost / len(_ORDER) for letter, cost in _COST.items()}
_LEAST, _MOST = 4, 12

_Tree: TypeAlias = "dict[str, _Tree]"


def trigger_of(pattern: str) -> str:
    """The piece of a pattern's text by which it is found."""
    pieces = [
        text[start : start + _MOST]
        for text in literals(pattern)
        for start in range(max(1, len(text) - _LEAST + 1))
        if len(text) - start >= _LEAST or start == 0
    ]
    long_enough = [piece for piece in pieces if len(piece) >= _LEAST] or pieces
    return min(long_enough, key=_cost)


def _cost(piece: str) -> tuple[float, int]:
    rare = [_RARE.get(letter, 0.0) for letter in piece]
    return (rare[0] + 0.1 * sum(rare[1:_LEAST]), -len(piece))


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
