"""The matrix of bandwidths of NVLinks in hwloc's XML, in MB/s."""

from __future__ import annotations

import pytest

from kdoctor.snapshot.imports.lstopo_links import Bandwidths

SELF = 1_000_000


def matrix(*rows: tuple[int, ...]) -> Bandwidths:
    """The matrix of objects 0, 1, 2, ..."""
    return Bandwidths(names=[str(place) for place in range(len(rows))], values=[value for row in rows for value in row])


def test_each_pair_of_gpus_has_its_own_links() -> None:
    found = matrix((SELF, 25_000, 50_000), (25_000, SELF, 75_000), (50_000, 75_000, SELF))
    assert found.links({0: "0", 1: "1", 2: "2"}) == {(0, 1): 1, (0, 2): 2, (1, 2): 3}
    # NVML's order may be another one.
    assert found.links({0: "2", 1: "0", 2: "1"}) == {(0, 1): 2, (0, 2): 3, (1, 2): 1}


def test_links_over_a_switch_are_counted_for_the_gpu_with_fewer() -> None:
    found = matrix((SELF, 0, 0, 150_000), (0, SELF, 0, 125_000), (0, 0, SELF, 0), (150_000, 125_000, 0, SELF))
    assert found.links({0: "0", 1: "1", 2: "2"}) == {(0, 1): 5, (0, 2): 0, (1, 2): 0}


def test_links_over_several_switches_are_added() -> None:
    found = matrix((SELF, 0, 50_000, 25_000), (0, SELF, 50_000, 25_000), (0, 0, 0, 0), (0, 0, 0, 0))
    assert found.links({0: "0", 1: "1"}) == {(0, 1): 3}


def test_direct_links_count_before_those_over_a_switch() -> None:
    found = matrix((SELF, 25_000, 150_000), (25_000, SELF, 150_000), (150_000, 150_000, SELF))
    assert found.links({0: "0", 1: "1"}) == {(0, 1): 1}


def test_too_few_switches_for_the_gpus_are_not_switches() -> None:
    """A processor of POWER is one object among several GPUs, which it does not connect with each other."""
    rows = [tuple(SELF if one == two else 150_000 if 4 in (one, two) else 0 for two in range(5)) for one in range(5)]
    assert set(matrix(*rows).links({place: str(place) for place in range(4)}).values()) == {0}
    two = [tuple(SELF if one == two else 150_000 if max(one, two) > 3 else 0 for two in range(6)) for one in range(6)]
    assert set(matrix(*two).links({place: str(place) for place in range(4)}).values()) == {12}


@pytest.mark.parametrize(
    ("values", "gpus"),
    [
        ([SELF, 25_000, 25_000], {0: "0", 1: "1"}),
        ([SELF, 25_000, 25_000, SELF, 0], {0: "0", 1: "1"}),
        ([SELF, 25_000, 25_000, SELF], {0: "0", 1: "7"}),
        ([SELF, 33_333, 33_333, SELF], {0: "0", 1: "1"}),
    ],
)
def test_matrix_that_does_not_fit_has_no_links(values: list[int], gpus: dict[int, str]) -> None:
    assert Bandwidths(names=["0", "1"], values=values).links(gpus) == {}


def test_text_of_each_element() -> None:
    found = Bandwidths()
    for element, text in (
        ("indexes", "OSDev:71 "),
        ("indexes", "72"),
        ("u64values", f"{SELF} 25000 "),
        ("u64values", f"25000 x -1 {10**18} {SELF}"),
        ("info", "7"),
    ):
        found.add(element, text)
    assert (found.names, found.values) == (["71", "72"], [SELF, 25_000, 25_000, SELF])
    assert found.links({0: "71", 1: "72"}) == {(0, 1): 1}
