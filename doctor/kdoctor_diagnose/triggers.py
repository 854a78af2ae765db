"""Finds the few lines of a log that can have a pattern, with one regular expression over whole blocks.

Each pattern is found by a short piece of its text, its trigger. Triggers begin with letters that are rare in logs, so
that the search skips most of a block.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kdoctor.failures.pattern import literals

_FREQUENT = frozenset(" 0123456789=.eatsonrlicp/:-dmu_")
_LEAST, _MOST = 5, 12
"""The most frequent characters of logs, and the letters of a trigger."""
_Tree: TypeAlias = "dict[str, _Tree]"


def trigger_of(pattern: str) -> str:
    """The piece of a pattern's text by which it is found: the beginning of its longest one, from a rare letter on."""
    text = max(literals(pattern), key=len)
    start = next((place for place, letter in enumerate(text[:-_LEAST]) if letter not in _FREQUENT), 0)
    return text[start : start + _MOST]


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
