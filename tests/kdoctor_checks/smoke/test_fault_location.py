from itertools import combinations

import pytest

from kdoctor_checks.smoke._fault_location import Fault, Pair, common_level, locate_fault

SOCKETS = {pair: "SYS" if (pair[0] < 2) != (pair[1] < 2) else "PIX" for pair in combinations(range(4), 2)}
"""Four GPUs, two on each socket."""


def of(replicas: int, *bad: Pair, levels: dict[Pair, str] | None = None) -> Fault:
    every = set(combinations(range(replicas), 2))
    return locate_fault(bad, every - set(bad), levels or {})


@pytest.mark.parametrize("replicas", [3, 4, 8])
def test_single_bad_pair_is_a_link(replicas: int) -> None:
    assert of(replicas, (0, 2)) == Fault(pair=(0, 2))


@pytest.mark.parametrize("replicas", [3, 4, 8, 16])
def test_gpu_whose_pairs_are_all_bad_is_named(replicas: int) -> None:
    bad = [pair for pair in combinations(range(replicas), 2) if 1 in pair]
    assert of(replicas, *bad) == Fault(gpus=(1,))


def test_gpu_with_one_good_pair_is_still_named() -> None:
    assert of(4, (0, 1), (1, 2)) == Fault(gpus=(1,))


def test_two_bad_gpus_are_both_named() -> None:
    assert of(5, *(pair for pair in combinations(range(5), 2) if set(pair) & {0, 3})) == Fault(gpus=(0, 3))


def test_no_gpu_is_named_if_no_pair_is_good() -> None:
    assert of(3, (0, 1), (0, 2), (1, 2)) == Fault(everything=True)


def test_gpu_with_a_single_bad_pair_is_not_named() -> None:
    """Four of six GPUs were in one tested pair each, which may be bad because of the other GPU."""
    assert locate_fault([(0, 1), (2, 3)], [(4, 5)], {}) == Fault()
    assert locate_fault([(0, 1), (0, 2), (3, 4)], [(5, 6)], {}) == Fault()


def test_gpus_with_two_bad_pairs_and_no_good_one_are_named() -> None:
    bad, good = [(0, 4), (0, 5), (1, 4), (1, 5)], [(4, 5), (4, 6), (5, 6)]
    assert locate_fault(bad, good, {}) == Fault(gpus=(0, 1))


def test_level_of_all_bad_pairs_is_named() -> None:
    across = [pair for pair, level in SOCKETS.items() if level == "SYS"]
    assert of(4, *across, levels=SOCKETS) == Fault(level="SYS")
    assert of(4, *across[:-1], levels=SOCKETS) == Fault()


def test_bad_pairs_with_nothing_in_common_name_nothing() -> None:
    assert of(4, (0, 1), (2, 3)) == Fault()
    assert of(4, (0, 1), (0, 2), (1, 2)) == Fault()


def test_gpu_alone_on_its_socket_may_be_the_level() -> None:
    levels = {(0, 1): "PIX", (0, 2): "SYS", (1, 2): "SYS"}
    assert of(3, (0, 2), (1, 2), levels=levels) == Fault(gpus=(2,))
    assert common_level([(0, 2), (1, 2)], [(0, 1)], levels) == "SYS"
