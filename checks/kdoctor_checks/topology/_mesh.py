"""What the NVLinks of all pairs together show: a GPU unlike its equals, or a mesh that was built with gaps."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Finding, Remedy
from kdoctor.records import record
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import RESTART, nvlinks
from kdoctor_checks.topology._nvlinks import is_card

_FEWEST = 3
"""GPUs that must agree before another one is unlike them: a bridge joins two cards, and leaves out a third."""
_ENDS = 2
"""GPUs that lose a link when one connection fails."""


@record
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
    own: dict[int, int] = {}
    for pair, count in counts.items():
        if pair <= {*members}:
            own.update((one, max(count, own.get(one, 0))) for one in pair)
    own = dict(sorted(own.items()))
    usual = max(own.values(), default=0)
    most = [index for index, links in own.items() if links == usual]
    odd = [index for index, links in own.items() if links < usual]
    pairs = {frozenset((one, other)): min(own[one], own[other]) for one in own for other in most if one != other}
    fits = all(counts.get(pair, expected) == expected for pair, expected in pairs.items())
    if not usual or len(most) < _FEWEST or len(odd) >= len(most) or not fits:
        return {}
    return {index: Odd(links=own[index], usual=usual, peers=len(most)) for index in odd}


def _totals(gpus: Gpus) -> dict[int, int]:
    """The NVLinks of each GPU in a machine that links only some pairs; empty if links may not have been read.

    Cards are left out, because their bridges are an option.
    """
    counts = _counts(gpus)
    indices = [gpu.index for gpu in gpus.devices]
    has_bridges = any(gpu.name is not None and is_card(gpu) for gpu in gpus.devices)
    if len(counts) < len(indices) * (len(indices) - 1) // 2 or has_bridges:
        return {}
    if 0 not in counts.values():
        return {}
    return {index: sum(count for pair, count in counts.items() if index in pair) for index in indices}


def built_with_gaps(gpus: Gpus) -> int | None:
    """The NVLinks of each GPU if all have as many, although some pairs have none: a cube mesh, or linked groups."""
    totals = set(_totals(gpus).values())
    return totals.pop() if len(totals) == 1 and totals != {0} else None


def short_of_links(gpus: Gpus) -> Mapping[int, Odd]:
    """The GPUs of such a machine, by index, with some NVLinks, but fewer than all but two of the GPUs."""
    totals = _totals(gpus)
    usual, times = Counter(totals.values()).most_common(1)[0] if totals else (0, 0)
    others = {index: total for index, total in totals.items() if total != usual}
    if times < _FEWEST or len(others) > _ENDS or not all(0 < total < usual for total in others.values()):
        return {}
    return {index: Odd(links=total, usual=usual, peers=times) for index, total in others.items()}


def fewer_links(gpu: Gpu, odd: Odd, remedy: Remedy) -> Finding:
    """The finding for a GPU with fewer NVLinks in the matrix of the pairs than the others."""
    return Finding(
        subject=gpu.subject,
        observed=odd.observed,
        brief=f"{odd.links} of {counted(odd.usual, 'NVLink')} active, unlike the other GPUs",
        expected=f"{counted(odd.usual, 'NVLink')}, as for the other GPUs",
        remedy=remedy,
        rollback=RESTART,
        explained_by=("gpu.mig-mode",) if gpu.mig_mode else (),
    )
