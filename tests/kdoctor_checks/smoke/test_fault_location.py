from itertools import combinations

from helpers.cases import cases
from kdoctor_checks.smoke._fault_location import Fault, Pair, common_level, locate_fault

SOCKETS = {pair: "SYS" if (pair[0] < 2) != (pair[1] < 2) else "PIX" for pair in combinations(range(4), 2)}
"""Four GPUs, two on each socket."""
ACROSS = [pair for pair, level in SOCKETS.items() if level == "SYS"]
ALONE = {(0, 1): "PIX", (0, 2): "SYS", (1, 2): "SYS"}
"""The last of three GPUs is alone on its socket."""


def pairs_of(replicas: int, *gpus: int) -> list[Pair]:
    return [pair for pair in combinations(range(replicas), 2) if {*pair} & {*gpus}]


@cases(
    *((replicas, [(0, 2)], {}, Fault(pair=(0, 2))) for replicas in (3, 4, 8)),
    *((replicas, pairs_of(replicas, 1), {}, Fault(gpus=(1,))) for replicas in (3, 4, 8, 16)),
    (4, [(0, 1), (1, 2)], {}, Fault(gpus=(1,))),  # one of its pairs is good
    (5, pairs_of(5, 0, 3), {}, Fault(gpus=(0, 3))),
    (3, [(0, 1), (0, 2), (1, 2)], {}, Fault(everything=True)),
    (4, ACROSS, SOCKETS, Fault(level="SYS")),
    (4, ACROSS[:-1], SOCKETS, Fault()),
    (4, [(0, 1), (2, 3)], {}, Fault()),  # they have nothing in common
    (4, [(0, 1), (0, 2), (1, 2)], {}, Fault()),
    (3, [(0, 2), (1, 2)], ALONE, Fault(gpus=(2,))),
)
def test_what_the_bad_pairs_have_in_common_is_named(
    replicas: int, bad: list[Pair], levels: dict[Pair, str], fault: Fault
) -> None:
    assert locate_fault(bad, {*combinations(range(replicas), 2)} - {*bad}, levels) == fault


@cases(
    # Four of six GPUs were in one tested pair each, which may be bad because of the other GPU.
    ([(0, 1), (2, 3)], [(4, 5)], Fault()),
    ([(0, 1), (0, 2), (3, 4)], [(5, 6)], Fault()),
    ([(0, 4), (0, 5), (1, 4), (1, 5)], [(4, 5), (4, 6), (5, 6)], Fault(gpus=(0, 1))),
)
def test_gpu_is_named_if_no_other_may_be_to_blame(bad: list[Pair], good: list[Pair], fault: Fault) -> None:
    assert locate_fault(bad, good, {}) == fault


def test_gpu_alone_on_its_socket_may_be_the_level() -> None:
    assert common_level([(0, 2), (1, 2)], [(0, 1)], ALONE) == "SYS"
