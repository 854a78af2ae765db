"""The reason for a choice: no claim about pairs that are unknown."""

from itertools import combinations

import pytest

from helpers import facts as healthy
from kdoctor.facts import Gpu, GpuPair, Gpus
from kdoctor.text.canvas import Canvas
from kdoctor.topology.advice import advise
from kdoctor.topology.choice import choose
from kdoctor.topology.layout import Layout, read_layout
from kdoctor.topology.reason import reason
from kdoctor.topology.render import write_topology
from kdoctor.topology.tree import grow

FASTER = ("No other", "best link", "best pair")


def machine(levels: dict[tuple[int, int], str], *devices: Gpu) -> Layout:
    """These GPUs; a pair without a level is unknown."""
    pairs = tuple(
        GpuPair(first=first, second=second, level=level, nvlinks=0)  # type: ignore[arg-type]
        for (first, second), level in levels.items()
    )
    return read_layout(Gpus(state="ready", count=len(devices), devices=devices, pairs=pairs), None)


def gpus(count: int) -> tuple[Gpu, ...]:
    return tuple(healthy.gpu(index, performance_state=0) for index in range(count))


def why(layout: Layout, replicas: int, *, is_recorded: bool = False) -> str:
    return reason(layout, choose(layout, replicas), is_recorded=is_recorded)


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_nothing_is_claimed_where_all_pairs_are_unknown(replicas: int) -> None:
    text = why(machine({}, *gpus(8)), replicas)
    assert "not known" in text
    assert not any(claim in text for claim in FASTER)
    # With all GPUs there is nothing to guess.
    assert (f"any {replicas} GPUs are a guess" in text) == (replicas < 8)


def test_recording_names_what_to_add() -> None:
    assert "nvidia-smi topo -m" in why(machine({}, *gpus(4)), 2, is_recorded=True)
    assert "nvidia-smi topo -m" not in why(machine({}, *gpus(4)), 2)


def test_some_unknown_pairs_are_counted() -> None:
    known = {(0, 1): "PIX", (0, 2): "SYS", (1, 2): "SYS"}
    layout = machine(known, *gpus(4))  # GPU 3 is unknown to the other three
    two, four = why(layout, 2), why(layout, 4)
    assert "PIX" in two
    assert "3 of the 6 pairs" in two
    assert "3 of these 6 pairs" in four
    assert "No other" not in two + four


def test_one_unknown_pair_is_singular() -> None:
    assert "1 of the 3 pairs of this machine is unknown" in why(machine({(0, 1): "PIX", (0, 2): "SYS"}, *gpus(3)), 2)


def test_equal_pairs_are_one_statement() -> None:
    layout = machine(dict.fromkeys(combinations(range(4), 2), "PIX"), *gpus(4))
    assert why(layout, 2) == why(layout, 4)
    choices = [(choice, advise(layout, choice)) for choice in (choose(layout, 2), choose(layout, 4))]
    text = write_topology(layout, (), choices)
    assert text.count("Every pair is PIX") == 1
    narrow = write_topology(layout, (), choices, canvas=Canvas(width=60)).split("2 replicas")[1]
    assert max(len(line) for line in narrow.splitlines() if "(" not in line) <= 60
    assert "CUDA_VISIBLE_DEVICES=0,1\n" in text
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3\n" in text


def test_slower_pair_is_compared_with_best() -> None:
    levels = dict.fromkeys(combinations(range(4), 2), "SYS") | {(0, 1): "PIX"}
    assert "No other 3 GPUs" in why(machine(levels, *gpus(4)), 3)
    assert "No other" not in why(machine(levels, *gpus(4)), 4)
    assert "best link here" in why(machine(levels, *gpus(4)), 2)


def test_single_pair_is_not_called_the_best() -> None:
    assert why(machine({(0, 1): "SYS"}, *gpus(2)), 2).startswith("The only pair is SYS")


def test_single_gpus() -> None:
    assert why(machine({}, *gpus(1)), 1) == "The only GPU."
    lost = healthy.gpu(0, errors={"name": "NVML_ERROR_GPU_IS_LOST"})
    assert why(machine({}, lost, healthy.gpu(1)), 1) == "The only GPU that is neither lost nor in use."
    narrow = tuple(healthy.gpu(index, performance_state=0, pcie_width=1) for index in range(2))
    assert "x1 of x16" in why(machine({}, *narrow), 1)
    assert "without a narrowed" in why(machine({}, narrow[0], gpus(2)[1]), 1)


def test_mig_is_counted() -> None:
    devices = (healthy.gpu(0, mig_mode=True), healthy.gpu(1))
    assert why(machine({(0, 1): "PIX"}, *devices), 2).startswith("1 of these GPUs is in MIG mode")


def test_gpus_in_use_are_counted_if_there_are_not_enough_others() -> None:
    devices = (healthy.gpu(0, memory_used_bytes=40 * 2**30), *gpus(3)[1:])
    text = why(machine({(0, 1): "PIX", (0, 2): "SYS", (1, 2): "SYS"}, *devices), 3)
    assert text.startswith("1 of these GPUs is in use, and too few others are usable. ")
    assert "NUMA" in text
    assert "in use" not in why(machine({(1, 2): "PIX"}, *devices), 2)
    assert why(machine({}, devices[0]), 1).endswith("usable. The only GPU.")


def test_lost_gpus_are_named() -> None:
    layout = machine({}, healthy.gpu(0, errors={"name": "NVML_ERROR_GPU_IS_LOST"}), *gpus(3)[1:])
    assert "(lost): GPU 0\n" in write_topology(layout, (), [])


def test_label_counts_the_links_that_are_active() -> None:
    (branch,) = grow(machine({}, healthy.gpu(0, nvlinks=healthy.nvlinks(4, down=(1,)), cpu_affinity=None)))
    (leaf,) = branch.children or (branch,)
    assert leaf.label.endswith(", NV3")


def test_link_of_a_lost_gpu_is_no_trouble_of_its_own() -> None:
    lost = healthy.gpu(0, errors={"name": "NVML_ERROR_GPU_IS_LOST"}, performance_state=0, pcie_width=1)
    leaves = list(grow(machine({}, lost, healthy.gpu(1, performance_state=0, pcie_width=1))))
    while any(leaf.children for leaf in leaves):
        leaves = [below for leaf in leaves for below in leaf.children or (leaf,)]
    assert [leaf.trouble for leaf in leaves] == ["lost", "runs x1 of x16"]
