"""Finds the few lines of a log that can have a pattern, with one regular expression over whole blocks.

Each pattern is found by a short piece of its text, its trigger.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kdoctor.failures.pattern import literals

_MOST = 12
"""Letters of a trigger."""

_Tree: TypeAlias = "dict[str, _Tree]"


def trigger_of(pattern: str) -> str:
    """The piece of a pattern's text by which it is found: the end of its longest one, which fewer lines have."""
    return max(literals(pattern), key=len)[-_MOST:]


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
