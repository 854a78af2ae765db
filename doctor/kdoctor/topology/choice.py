"""Which GPUs to take for N replicas: every set is looked at, so the answer is the best one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from operator import attrgetter

from kdoctor.errors import UsageError
from kdoctor.topology.layout import Layout, Link

MOST_GPUS = 16
"""Up to here all sets are looked at: at most 12,870 of them."""

_quality = attrgetter("quality")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The GPUs to take for a number of replicas."""

    replicas: int
    gpus: tuple[int, ...]
    """Indices in the driver's order, which is CUDA's under ``CUDA_DEVICE_ORDER=PCI_BUS_ID``."""
    slowest: Link | None
    """The pair that sets the pace; None for one GPU."""
    best: Link | None
    """The best pair of the whole machine: no set of this size can be better than a set of such pairs."""
    crossings: int | None
    """Pairs in different NUMA nodes; None where a node is not known."""
    sets: int
    """Number of sets of this size among which it is the best."""

    @property
    def visible_devices(self) -> str:
        """The value of ``CUDA_VISIBLE_DEVICES``."""
        return ",".join(map(str, self.gpus))

    @property
    def commands(self) -> tuple[str, ...]:
        """Shell commands to paste."""
        return ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", f"export CUDA_VISIBLE_DEVICES={self.visible_devices}")

    @property
    def cost(self) -> float | None:
        """Share of the best pair's bandwidth that the slowest pair has, from 0 to 1; None where it is not known."""
        if not (self.slowest and self.best and self.slowest.gbs and self.best.gbs):
            return None
        return self.slowest.gbs / self.best.gbs


def choose(layout: Layout, replicas: int) -> Choice:
    """The best set of that many GPUs.

    Its slowest pair is the fastest possible, for an all-reduce goes at the pace of its slowest link; among such
    sets the fewest pairs cross NUMA nodes; then the sum of all pairs decides, then the lowest indices.

    Raises:
        UsageError: there are not that many usable GPUs, or more than ``MOST_GPUS``.
    """
    usable = [place.gpu.index for place in layout.usable]
    if not 1 <= replicas <= len(usable):
        raise UsageError(
            f"{replicas} replicas need {replicas} GPUs, and this machine has {len(usable)} that answer",
            hint="kdoctor topology without --replicas shows them.",
        )
    if len(usable) > MOST_GPUS:
        raise UsageError(f"the choice among {len(usable)} GPUs is not supported; the most is {MOST_GPUS}")
    chosen = max(combinations(usable, replicas), key=_Rating(layout, usable).of)
    pairs = [layout.link(*pair) for pair in combinations(chosen, 2)]
    everywhere = [layout.link(*pair) for pair in combinations(usable, 2)]
    return Choice(
        replicas=replicas,
        gpus=chosen,
        slowest=min(pairs, key=_quality, default=None),
        best=max(everywhere, key=_quality, default=None) if replicas > 1 else None,
        crossings=_crossings(layout, chosen),
        sets=comb(len(usable), replicas),
    )


class _Rating:
    """Rates sets of GPUs, quickly: qualities become small numbers once."""

    def __init__(self, layout: Layout, usable: Sequence[int]) -> None:
        pairs = list(combinations(usable, 2))
        ranks = {quality: rank for rank, quality in enumerate(sorted({layout.link(*pair).quality for pair in pairs}))}
        self._rank = {pair: ranks[layout.link(*pair).quality] for pair in pairs}
        self._crosses = {pair: _crosses(layout, *pair) for pair in pairs}
        self._narrow = {place.gpu.index: place.narrow is not None for place in layout.places}

    def of(self, chosen: tuple[int, ...]) -> tuple[int, int, int, int, tuple[int, ...]]:
        """The greater, the better."""
        pairs = list(combinations(chosen, 2))
        ranks = [self._rank[pair] for pair in pairs]
        return (
            min(ranks, default=0),
            -sum(self._crosses[pair] or 0 for pair in pairs),
            sum(ranks),
            -sum(self._narrow[index] for index in chosen),
            tuple(-index for index in chosen),
        )


def _crosses(layout: Layout, one: int, other: int) -> bool | None:
    """Whether two GPUs are in different NUMA nodes; where a node is not known, their PCIe distance tells."""
    first, second = layout.numa_node(one), layout.numa_node(other)
    if first is not None and second is not None:
        return first != second
    level = layout.link(one, other).level
    return None if level is None else level == "SYS"


def _crossings(layout: Layout, chosen: Iterable[int]) -> int | None:
    crossings = [_crosses(layout, *pair) for pair in combinations(chosen, 2)]
    return None if None in crossings else sum(map(bool, crossings))
