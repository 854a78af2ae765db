"""What the NVLinks of all pairs together show: a GPU unlike its equals, or a mesh that was built with gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdoctor.facts import Gpu, Gpus
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import nvlinks
from kdoctor_checks.topology._nvlinks import is_card

_FEWEST = 3
"""GPUs that must agree before another one is unlike them: a bridge joins two cards, and leaves out a third."""


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A GPU with fewer NVLinks than its equals."""

    links: int
    usual: int
    peers: int
    """Number of GPUs that have the usual number."""

    @property
    def observed(self) -> str:
        """``0 of 18 NVLinks active; 7 other GPUs have 18``."""
        return f"{self.links} of {counted(self.usual, 'NVLink')} active; {self.peers} other GPUs have {self.usual}"


def _counts(gpus: Gpus) -> dict[frozenset[int], int]:
    """The number of NVLinks of each pair for which it was read."""
    known = ((frozenset((pair.first, pair.second)), nvlinks(pair)) for pair in gpus.pairs)
    return {pair: count for pair, count in known if count is not None}


def unlike_equals(gpus: Gpus) -> Mapping[int, Odd]:
    """The GPUs, by index, with fewer NVLinks than those of the same model, which all reach each other.

    Every link of an NVSwitch machine leads to all GPUs, so a pair has as many as the GPU with fewer.
    """
    counts = _counts(gpus)
    found: dict[int, Odd] = {}
    for name in dict.fromkeys(gpu.name for gpu in gpus.devices):
        members = [gpu.index for gpu in gpus.devices if gpu.name == name]
        # A workstation's fifth GPU drives the display. Boards have 2, 4, 8 or 16 GPUs.
        if name is not None or len(members).bit_count() == 1:
            found |= _unlike(members, counts)
    return found


def _unlike(members: Sequence[int], counts: Mapping[frozenset[int], int]) -> dict[int, Odd]:
    own = {
        one: max((counts.get(frozenset((one, other)), 0) for other in members if other != one), default=0)
        for one in members
    }
    usual = max(own.values(), default=0)
    most = [index for index in members if own[index] == usual]
    odd = [index for index in members if own[index] < usual]
    pairs = {frozenset((one, other)): min(own[one], own[other]) for one in members for other in most if one != other}
    fits = all(counts.get(pair, expected) == expected for pair, expected in pairs.items())
    if not usual or len(most) < _FEWEST or len(odd) >= len(most) or not fits:
        return {}
    return {index: Odd(links=own[index], usual=usual, peers=len(most)) for index in odd}


def built_with_gaps(gpus: Gpus) -> int | None:
    """The NVLinks of each GPU if all have as many, although some pairs have none: a cube mesh, or linked groups.

    None if links may be missing, and for cards, whose bridges are an option.
    """
    counts = _counts(gpus)
    indices = [gpu.index for gpu in gpus.devices]
    pairs = len(indices) * (len(indices) - 1) // 2
    if len(counts) < pairs or any(map(_has_bridges, gpus.devices)):
        return None
    totals = {sum(count for pair, count in counts.items() if index in pair) for index in indices}
    return totals.pop() if len(totals) == 1 and 0 in counts.values() and totals != {0} else None


def _has_bridges(gpu: Gpu) -> bool:
    return gpu.name is not None and is_card(gpu)
