"""The choice of GPUs, compared with every possible set and on machines with an obvious answer."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import facts as healthy
from kdoctor.errors import UsageError
from kdoctor.facts import GpuPair, GpuProcess, Gpus
from kdoctor.topology.choice import choose
from kdoctor.topology.layout import Layout, read_layout

PAIRS_OF_3 = ((0, 1), (0, 2), (1, 2))
LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")


def machine(count: int, levels: dict[tuple[int, int], str], nodes: Sequence[int] = (0,) * 7, **nvlinks: int) -> Layout:
    """GPUs with these distances (SYS by default), NUMA nodes and NVLinks (``n0_1=4``)."""
    pairs = tuple(
        GpuPair(
            first=first,
            second=second,
            level=levels.get((first, second), "SYS"),  # type: ignore[arg-type]
            nvlinks=nvlinks.get(f"n{first}_{second}", 0),
        )
        for first, second in combinations(range(count), 2)
    )
    devices = tuple(healthy.gpu(index, performance_state=0, numa_affinity=(nodes[index],)) for index in range(count))
    return read_layout(Gpus(state="ready", count=count, devices=devices, pairs=pairs), None)


def test_nvlink_beats_pcie_and_more_links_beat_fewer() -> None:
    choice = choose(machine(4, {(2, 3): "PIX"}, n0_1=2, n0_2=4), 2)
    assert choice.gpus == (0, 2)
    assert choice.commands == ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=0,2")


def test_gpu_on_narrow_link_is_not_chosen() -> None:
    states = ((None, 8), (0, 1), (0, 16))  # the first one may be idle
    devices = tuple(healthy.gpu(n, performance_state=state, pcie_width=x) for n, (state, x) in enumerate(states))
    pairs = tuple(GpuPair(first=a, second=b, level="PIX", nvlinks=0) for a, b in combinations(range(3), 2))
    layout = read_layout(Gpus(state="ready", count=3, devices=devices, pairs=pairs), None)
    assert choose(layout, 2).gpus == (0, 2)
    # x1 against x16: a sixteenth of the bandwidth.
    assert choose(layout, 3).cost == pytest.approx(1 / 16)


def test_slower_end_of_an_nvlink_counts() -> None:
    slow = healthy.gpu(1, nvlinks=healthy.nvlinks(speed_gbs=20.0))
    pair = GpuPair(first=0, second=1, level="SYS", nvlinks=2)
    layout = read_layout(Gpus(state="ready", count=2, devices=(healthy.gpu(0), slow), pairs=(pair,)), None)
    assert layout.link(0, 1).gbs == 2 * 20.0


def test_lost_gpu_is_never_chosen() -> None:
    lost = healthy.gpu(0, errors={"name": "NVML_ERROR_GPU_IS_LOST"})
    devices = (lost, healthy.gpu(1), healthy.gpu(2))
    layout = read_layout(Gpus(state="ready", count=3, devices=devices), None)
    assert choose(layout, 2).gpus == (1, 2)
    with pytest.raises(UsageError, match="only 2 GPUs"):
        choose(layout, 3)


def test_blocked_peer_access_counts_as_host_distance() -> None:
    pairs = (
        GpuPair(first=0, second=1, level="PIX", nvlinks=0, p2p_read="CNS"),
        GpuPair(first=0, second=2, level="PHB", nvlinks=0, p2p_read="OK", p2p_write="OK"),
        GpuPair(first=1, second=2, level="SYS", nvlinks=0),
    )
    layout = read_layout(Gpus(state="ready", count=3, devices=tuple(map(healthy.gpu, range(3))), pairs=pairs), None)
    assert layout.link(0, 1).label == "PIX!"
    assert choose(layout, 2).gpus == (0, 2)


def test_crossings_are_unknown_without_nodes_and_distance() -> None:
    devices = tuple(healthy.gpu(index, cpu_affinity=None, numa_affinity=None) for index in range(2))
    layout = read_layout(Gpus(state="ready", count=2, devices=devices), None)
    assert choose(layout, 2).crossings is None


@pytest.mark.parametrize(
    "taken",
    [{"mig_mode": True}, {"processes": (GpuProcess(pid=7, used_memory_bytes=None),)}, {"memory_used_bytes": 60 << 30}],
    ids=str,
)
def test_gpu_in_mig_mode_or_in_use_is_chosen_last(taken: dict[str, Any]) -> None:
    devices = (healthy.gpu(0, **taken), healthy.gpu(1), healthy.gpu(2))
    pairs = tuple(GpuPair(first=a, second=b, level="PIX" if a == 0 else "SYS", nvlinks=0) for a, b in PAIRS_OF_3)
    layout = read_layout(Gpus(state="ready", count=3, devices=devices, pairs=pairs), None)
    assert choose(layout, 2).gpus == (1, 2)
    assert choose(layout, 3).gpus == (0, 1, 2)


def test_unknown_pair_counts_as_slower_than_known() -> None:
    pairs = (GpuPair(first=1, second=2, level="SYS", nvlinks=0),)
    layout = read_layout(Gpus(state="ready", count=3, devices=tuple(map(healthy.gpu, range(3))), pairs=pairs), None)
    choice = choose(layout, 2)
    assert choice.gpus == (1, 2)
    assert (choice.unknown, choice.cost) == (0, None)
    assert (choose(layout, 3).unknown, choose(layout, 3).cost) == (2, None)
    assert layout.link(0, 1).gbs is None


@settings(max_examples=60)
@given(data=st.data(), count=st.integers(2, 7))
def test_criteria_are_compared_in_their_order(data: st.DataObject, count: int) -> None:
    levels = {pair: data.draw(st.sampled_from(LEVELS)) for pair in combinations(range(count), 2)}
    nodes = [data.draw(st.integers(0, 1)) for _ in range(count)]
    size = data.draw(st.integers(2, count))
    known = sorted(set(levels.values()), key=LEVELS.index)

    def worth(chosen: tuple[int, ...]) -> tuple[int, int, int, tuple[int, ...]]:
        """The slowest pair, the pairs across NUMA nodes, all pairs, the indices: by definition, less is better."""
        pairs = list(combinations(chosen, 2))
        places = [known.index(levels[pair]) for pair in pairs]
        return max(places), sum(nodes[one] != nodes[other] for one, other in pairs), sum(places), chosen

    choice = choose(machine(count, levels, nodes), size)
    assert choice.gpus == min(combinations(range(count), size), key=worth)
    assert choice.crossings == worth(choice.gpus)[1]
