"""Which GPU or link explains the bad ones among pairs of GPUs, if one does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """What the bad pairs have in common. At most one of the fields says so."""

    gpus: tuple[int, ...] = ()
    """Those that are in every bad pair, while the pairs without them are good."""
    pair: Pair | None = None
    """The one bad pair; both of its GPUs are good with others."""
    level: str | None = None
    """The topology level of all bad pairs and of no good one."""
    everything: bool = False
    """No pair is good."""


def culprit(bad: Iterable[Pair], good: Iterable[Pair], levels: Mapping[Pair, str]) -> Culprit:
    """What explains the bad pairs; nothing does if no field says so.

    A single bad pair of three GPUs or more is a link: each of its GPUs is good with another. A GPU is named only if
    two of its pairs are bad or more, and some pair without it is good.
    """
    bad, good = set(bad), set(good)
    if not good:
        return Culprit(everything=True)
    if len(bad) == 1:
        return Culprit(pair=next(iter(bad)))
    everywhere = _always_bad(bad, good)
    shared = {index for pair in bad for index in pair if all(index in other for other in bad)}
    for gpus in (everywhere, shared):
        if gpus and all(set(pair) & gpus for pair in bad) and any(not set(pair) & gpus for pair in good):
            return Culprit(gpus=tuple(sorted(gpus)))
    return Culprit(level=_common_level(bad, good, levels))


def level_explains(bad: Iterable[Pair], good: Iterable[Pair], levels: Mapping[Pair, str]) -> str | None:
    """The level of all bad pairs, if no good one has it: then it explains them as well as a GPU does."""
    return _common_level(set(bad), set(good), levels)


def _always_bad(bad: set[Pair], good: set[Pair]) -> set[int]:
    """The GPUs of two bad pairs or more, and of no good one."""
    fine = {index for pair in good for index in pair}
    often = [index for pair in bad for index in pair]
    return {index for index in often if often.count(index) > 1 and index not in fine}


def _common_level(bad: set[Pair], good: set[Pair], levels: Mapping[Pair, str]) -> str | None:
    theirs = {levels.get(pair) for pair in bad}
    (level,) = theirs if len(theirs) == 1 else (None,)
    return None if level is None or level in {levels.get(pair) for pair in good} else level
