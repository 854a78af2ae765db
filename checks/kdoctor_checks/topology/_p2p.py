"""What the checks of peer access have in common."""

from __future__ import annotations

from itertools import combinations

from kdoctor.facts import GpuPair, Gpus
from kdoctor_checks._gpus import answering

MEANINGS = {
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "DR": "disabled by a registry key",
    "NS": "not supported",
}


def pairs_to_judge(gpus: Gpus) -> list[GpuPair]:
    """Every two GPUs that answer; a pair that was not read has no statuses."""
    read = {frozenset((pair.first, pair.second)): pair for pair in gpus.pairs}
    return [
        read.get(frozenset((one.index, two.index)), GpuPair(first=one.index, second=two.index, level=None))
        for one, two in combinations(answering(gpus), 2)
    ]


def geforce(pair: GpuPair, gpus: Gpus) -> bool | None:
    """Whether one of the two is a GeForce card; None where that was not read."""
    names = [gpu.name for gpu in gpus.devices if gpu.index in (pair.first, pair.second)]
    return True if any("GeForce" in (name or "") for name in names) else None if None in names else False


def told_by_pairs(pair: GpuPair) -> bool:
    """Whether peer access fails because the GPUs are on two sockets, which topology.pairs tells."""
    return pair.level == "SYS" and not pair.nvlinks and {pair.p2p_read, pair.p2p_write} <= {"CNS", "TNS", "NS"}


def describe(pair: GpuPair) -> str:
    """The statuses in words."""
    read, write = (f"{status} ({MEANINGS[status]})" if status in MEANINGS else status for status in _statuses(pair))
    return f"P2P read {read}, write {write}"


def _statuses(pair: GpuPair) -> tuple[str, str]:
    return pair.p2p_read or "not read", pair.p2p_write or "not read"
