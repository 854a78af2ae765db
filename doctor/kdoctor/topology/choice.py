"""Which GPUs to use for N replicas. All sets are compared."""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from operator import attrgetter

from kdoctor.errors import UsageError
from kdoctor.records import record
from kdoctor.text.lists import counted
from kdoctor.topology.layout import Layout, Link

MOST_GPUS = 16
"""The limit for comparing all sets: at most 12,870 of them."""

_quality = attrgetter("quality")


@record
class Choice:
    """The GPUs to use for a number of replicas."""

    replicas: int
    gpus: tuple[int, ...]
    """Indices in the driver's order, which is CUDA's under ``CUDA_DEVICE_ORDER=PCI_BUS_ID``."""
    pairs: tuple[Link, ...]
    """The pairs of these GPUs; none for one GPU."""
    all_pairs: tuple[Link, ...]
    """The pairs of all GPUs that could have been chosen."""
    crossings: int | None
    """Pairs across NUMA nodes; None if a node is unknown."""
    sets: int
    """Number of sets of this size that were compared."""

    @property
    def slowest(self) -> Link | None:
        """The pair that limits the speed, an unknown one before all others; None for one GPU."""
        return min(self.pairs, key=_quality, default=None)

    @property
    def best(self) -> Link | None:
        """The best pair of the whole machine; None for one GPU."""
        return max(self.all_pairs, key=_quality, default=None) if self.pairs else None

    @property
    def unknown(self) -> int:
        """Number of pairs of these GPUs whose connection is unknown."""
        return sum(not link.is_known for link in self.pairs)

    @property
    def visible_devices(self) -> str:
        """The value of ``CUDA_VISIBLE_DEVICES``."""
        return ",".join(map(str, self.gpus))

    @property
    def commands(self) -> tuple[str, ...]:
        """Shell commands that select the GPUs."""
        return ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", f"export CUDA_VISIBLE_DEVICES={self.visible_devices}")

    @property
    def cost(self) -> float | None:
        """Bandwidth of the slowest pair relative to the best pair, from 0 to 1; None if unknown."""
        if not all(link.is_known for link in self.all_pairs):
            return None
        if not (self.slowest and self.best and self.slowest.gbs and self.best.gbs):
            return None
        return self.slowest.gbs / self.best.gbs


def choose(layout: Layout, replicas: int) -> Choice:
    """The best set of that many GPUs.

    GPUs in use, and those that fail a check, are left out if there are enough others. The criteria, in this order: the
    fewest GPUs in MIG mode, because a process sees one MIG instance; the fastest slowest pair, because it limits an
    all-reduce; the fewest pairs across NUMA nodes; the sum of all pairs; the fewest narrow links; the lowest indices.
    An unknown pair counts as slower than every known one.

    Raises:
        UsageError: there are fewer usable GPUs, or more than ``MOST_GPUS``.
    """
    usable = [place.gpu.index for place in layout.candidates(replicas)]
    if not 1 <= replicas <= len(usable):
        raise UsageError(
            f"{counted(replicas, 'replica')} requested, but only {counted(len(usable), 'GPU')} responded",
            hint="Run kdoctor topology without --replicas to list them.",
        )
    if len(usable) > MOST_GPUS:
        raise UsageError(f"choosing among {len(usable)} GPUs is not supported (limit {MOST_GPUS})")
    chosen = max(combinations(usable, replicas), key=_Rating(layout, usable).of)
    crossings = [_crosses(layout, *pair) for pair in combinations(chosen, 2)]
    return Choice(
        replicas=replicas,
        gpus=chosen,
        pairs=tuple(layout.link(*pair) for pair in combinations(chosen, 2)),
        all_pairs=tuple(layout.link(*pair) for pair in combinations(usable, 2)),
        crossings=None if None in crossings else sum(map(bool, crossings)),
        sets=comb(len(usable), replicas),
    )


class _Rating:
    """Rates sets of GPUs. Qualities are ranked once, to make comparing fast."""

    def __init__(self, layout: Layout, usable: Sequence[int]) -> None:
        pairs = list(combinations(usable, 2))
        ranks = {quality: rank for rank, quality in enumerate(sorted({layout.link(*pair).quality for pair in pairs}))}
        self._rank = {pair: ranks[layout.link(*pair).quality] for pair in pairs}
        self._crosses = {pair: _crosses(layout, *pair) for pair in pairs}
        self._narrow = {place.gpu.index: place.narrow is not None for place in layout.places}
        self._mig = {place.gpu.index: place.in_mig_mode for place in layout.places}

    def of(self, chosen: tuple[int, ...]) -> tuple[int, int, int, int, int, tuple[int, ...]]:
        """The rating of a set; greater is better."""
        pairs = list(combinations(chosen, 2))
        ranks = [self._rank[pair] for pair in pairs]
        return (
            -sum(self._mig[index] for index in chosen),
            min(ranks, default=0),
            -sum(self._crosses[pair] or 0 for pair in pairs),
            sum(ranks),
            -sum(self._narrow[index] for index in chosen),
            tuple(-index for index in chosen),
        )


def _crosses(layout: Layout, one: int, other: int) -> bool | None:
    """Whether two GPUs are in different NUMA nodes, by their PCIe distance if a node is unknown."""
    first, second = layout.numa_node(one), layout.numa_node(other)
    if first is not None and second is not None:
        return first != second
    level = layout.link(one, other).level
    return None if level is None else level == "SYS"
