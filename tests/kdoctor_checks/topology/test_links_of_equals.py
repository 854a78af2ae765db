"""NVLinks of GPUs that should have the same number: what is odd, and what is said about it."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpu, gpus, nvlinks, pair, pci
from kdoctor.facts import Gpu, NvLink, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Remedy, Unjudged
from kdoctor_checks.topology._mesh import Odd, built_with_gaps, fewer_links, short_of_links, unlike_equals
from kdoctor_checks.topology._nvlinks import has, judge_links, switched
from kdoctor_checks.topology._p2p import describe, geforce, judge_pair

REMEDY = Remedy.inspect("Look.")
UNREAD = Unavailable(unavailable="not read")


def linked(number: int, *, without: dict[tuple[int, int], int] | None = None, usual: int = 18, **changes: Any) -> Any:
    """GPUs with that many NVLinks in each pair, but for some."""
    found = tuple(
        pair(first, second, nvlinks=(without or {}).get((first, second), usual))
        for first, second in combinations(range(number), 2)
    )
    return gpus(number, *(gpu(index, **changes) for index in range(number)), pairs=found)


def test_links_that_do_not_fit_are_the_fault_of_no_gpu() -> None:
    short = {(index, 7): 12 for index in range(7)}
    assert unlike_equals(linked(8, without={**short, (0, 1): 12})) == {}
    of_two = {(index, odd): 12 for odd in (6, 7) for index in range(odd)}
    assert [*unlike_equals(linked(8, without=of_two))] == [6, 7]
    halves = {(one, other): 12 for one, other in combinations(range(8), 2) if other > 3}
    assert unlike_equals(linked(8, without=halves)) == {}


@pytest.mark.parametrize(("number", "judged"), [(8, True), (5, False)])
def test_nameless_gpus_are_equals_on_boards_of_a_power_of_two(number: int, *, judged: bool) -> None:
    nameless = dict.fromkeys(range(number - 1), 12)
    found = linked(number, without={(index, number - 1): 12 for index in nameless}, name=None)
    assert bool(unlike_equals(found)) is judged


MESH = {(0, 2): 0, (1, 3): 0}
"""A board of four whose GPUs are each linked to two others."""


def test_board_with_gaps_has_the_same_number_for_each_gpu() -> None:
    assert built_with_gaps(linked(4, without=MESH, usual=1)) == 2
    assert built_with_gaps(linked(4)) is None  # all pairs are linked
    assert built_with_gaps(linked(4, usual=0)) is None
    assert built_with_gaps(linked(4, without={**MESH, (0, 1): 0}, usual=1)) is None
    unread = {**MESH, (0, 1): None}
    assert built_with_gaps(linked(4, without=unread, usual=1)) is None  # type: ignore[arg-type]


def test_gpus_with_fewer_links_than_most_are_short() -> None:
    ring = {(0, 2): 0, (0, 3): 0, (1, 3): 0, (1, 4): 0, (2, 4): 0}  # a ring of five
    assert short_of_links(linked(5, without=ring, usual=2)) == {}
    broken = {**ring, (0, 1): 1}
    odd = Odd(links=3, usual=4, peers=3)
    assert short_of_links(linked(5, without=broken, usual=2)) == {0: odd, 1: odd}
    assert short_of_links(linked(5, without={**broken, (2, 3): 1}, usual=2)) == {}  # no three are equal
    assert short_of_links(linked(5, without={**ring, (0, 1): 3}, usual=2)) == {}  # two have more
    assert short_of_links(linked(5, without={**ring, (0, 1): 1, (1, 4): 1}, usual=2)) == {}  # one has more
    two = {(one, other): 0 for one in range(2) for other in range(2, 5)} | {(0, 1): 1}
    assert short_of_links(linked(5, without=two, usual=2)) == dict.fromkeys(range(2), Odd(links=1, usual=4, peers=3))
    ring_of_seven = {(one, other): 0 for one, other in combinations(range(7), 2) if other - one not in (1, 6)}
    of_three = {**ring_of_seven, (0, 1): 1, (1, 2): 1}
    assert short_of_links(linked(7, without=of_three, usual=2)) == {}  # no two connections have three ends
    alone = {(0, index): 0 for index in range(1, 5)}
    assert short_of_links(linked(5, without=alone, usual=2)) == {}  # it has none


def test_gpus_are_not_short_of_links_that_were_not_read_or_need_bridges() -> None:
    ring: dict[tuple[int, int], Any] = {(0, 2): 0, (0, 3): 0, (1, 3): 0, (1, 4): 0, (2, 4): 0}
    unread: dict[tuple[int, int], Any] = {**ring, (0, 1): None}
    assert short_of_links(linked(5, without=unread, usual=2)) == {}
    found = linked(5, without={**ring, (0, 1): 1}, usual=2)
    mixed = replace(found, devices=(replace(found.devices[0], name="NVIDIA A40"), *found.devices[1:]))
    assert short_of_links(mixed) == {}


def test_odd_gpu_is_described() -> None:
    found = fewer_links(gpu(0, mig_mode=True), Odd(links=1, usual=2, peers=3), REMEDY)
    assert found.observed == "1 of 2 NVLinks active; 3 other GPUs have 2"
    assert found.brief == "1 of 2 NVLinks active, unlike the other GPUs"
    assert found.expected == "2 NVLinks, as for the other GPUs"
    assert found.explained_by == ("gpu.mig-mode",)
    assert fewer_links(gpu(0), Odd(links=1, usual=2, peers=3), REMEDY).explained_by == ()


def judged(first: Gpu, *peers: Gpu, least: int = 0) -> tuple[type, str]:
    found = judge_links(first, (first, *peers), least, REMEDY)
    return type(found), found.reason if isinstance(found, Unjudged) else found.observed


@cases(
    (nvlinks(18), 0, Evidence, "18 NVLinks active, each 26.562 GB/s"),
    (nvlinks(1), 0, Evidence, "1 NVLink active, each 26.562 GB/s"),
    (nvlinks(2, speed_gbs=None), 0, Evidence, "2 NVLinks active"),
    (nvlinks(2), 3, Finding, "2 NVLinks active, 3 expected"),
    (nvlinks(3), 3, Evidence, "3 NVLinks active, each 26.562 GB/s"),
    (nvlinks(4, down=(1, 3)), 0, Finding, "2 of 4 NVLinks active (inactive: 1, 3)"),
    (nvlinks(2, down=(0, 1)), 0, Finding, "all 2 NVLinks are inactive"),
    (nvlinks(1, down=(0,)), 0, Finding, "all NVLinks are inactive"),
    ((), 0, Unjudged, "none of its NVLinks was read"),
    ((NvLink(index=0, active=None),), 0, Unjudged, "the state of 1 NVLink was not read (no reason given)"),
    ((NvLink(index=0, active=None, errors={"active": "hung"}), *nvlinks(1)), 0, Unjudged,
     "the state of 1 NVLink was not read (hung)"),
)  # fmt: skip
def test_links_of_one_gpu(links: tuple[NvLink, ...], least: int, kind: type, text: str) -> None:
    assert judged(gpu(0, nvlinks=links), least=least) == (kind, text)


@cases(
    ((18,), "0 of 18 NVLinks active; 1 other GPU has 18"),
    ((18, 18), "0 of 18 NVLinks active; 2 other GPUs have 18"),
    ((18, 12), "0 of 18 NVLinks active; 1 other GPU has 18"),
)
def test_inactive_links_are_compared_with_those_of_the_peers(others: tuple[int, ...], text: str) -> None:
    peers = [gpu(index, nvlinks=nvlinks(count)) for index, count in enumerate(others, 1)]
    assert judged(gpu(0, nvlinks=nvlinks(2, down=(0, 1))), *peers) == (Finding, text)
    assert (has(1), has(2)) == ("has", "have")


@pytest.mark.parametrize(("speed", "kind"), [(95.0, Evidence), (94.9, Finding)])
def test_link_below_95_percent_of_the_usual_speed_is_slow(speed: float, kind: type) -> None:
    links = (*nvlinks(2, speed_gbs=100.0), NvLink(index=2, active=True, speed_gbs=speed))
    found, text = judged(gpu(0, nvlinks=links))
    assert found is kind
    assert kind is Evidence or text == "slow NVLinks: link 2 94.9 of 100 GB/s"


def test_usual_speed_is_that_of_most_links() -> None:
    faster = NvLink(index=4, active=True, speed_gbs=200.0)
    assert judged(gpu(0, nvlinks=(*nvlinks(4, speed_gbs=100.0), faster)))[0] is Evidence


@pytest.mark.parametrize(
    "others",
    [tuple(NvLink(index=index, active=False, speed_gbs=200.0) for index in range(4)), nvlinks(4, speed_gbs=None)],
    ids=["inactive", "unread"],
)
def test_usual_speed_is_that_of_active_links_whose_speed_was_read(others: tuple[NvLink, ...]) -> None:
    peer = gpu(1, name="NVIDIA A100", nvlinks=others)
    assert judged(gpu(0, nvlinks=nvlinks(2, speed_gbs=100.0)), peer) == (Evidence, "2 NVLinks active, each 100 GB/s")


@cases(
    ({"nvlinks": nvlinks(2)}, True),
    ({"nvlinks": nvlinks(2, remote_kind="gpu")}, False),
    ({"nvlinks": nvlinks(2, remote_kind="npu")}, False),
    ({"nvlinks": nvlinks(2, remote_kind=None), "fabric_state": "completed"}, True),
    ({"nvlinks": nvlinks(2, remote_kind=None), "fabric_state": None, "name": "NVIDIA A40"}, False),
    ({"nvlinks": nvlinks(2, remote_kind=None), "fabric_state": None, "name": "Tesla V100-SXM2-16GB"}, False),
    ({"nvlinks": nvlinks(2, remote_kind=None), "fabric_state": None, "name": "NVIDIA A100-SXM4-40GB"}, True),
    ({"nvlinks": nvlinks(2, down=(0, 1)), "fabric_state": None, "name": "Tesla V100-SXM2-16GB"}, True),
    ({"nvlinks": nvlinks(2, down=(0,), remote_kind=None), "fabric_state": None, "name": "Tesla V100-SXM2"}, False),
    ({"nvlinks": (), "fabric_state": None, "name": "Tesla V100-SXM2-16GB"}, False),
)
def test_gpus_on_switches(changes: dict[str, Any], *, expected: bool) -> None:
    assert switched(gpu(0, **changes), UNREAD) is expected


def test_switch_on_the_bus_shows_that_gpus_are_on_switches() -> None:
    bare = gpu(0, nvlinks=(), fabric_state=None, name="Tesla V100-SXM2-16GB")
    assert switched(bare, pci(1)) is True
    assert switched(bare, PciDevices(devices=pci(1).gpus)) is False
    assert switched(gpu(0, nvlinks=(), fabric_state=None, name="NVIDIA A40"), pci(1)) is False


@cases(
    ("OK", "OK", Evidence, "P2P supported"),
    ("CNS", "CNS", Finding, "no peer access (P2P read and write CNS (chipset not supported))"),
    ("OK", "NS", Finding, "no peer access (P2P read OK, write NS (not supported))"),
    (None, "NS", Finding, "no peer access (P2P read not read, write NS (not supported))"),
    (None, "OK", Unjudged, "P2P status not read (no reason given)"),
    (None, None, Unjudged, "P2P status not read (no reason given)"),
)
def test_peer_access_of_a_pair(read: Any, write: Any, kind: type, text: str) -> None:
    found = judge_pair(pair(p2p_read=read, p2p_write=write), gpus(2), REMEDY)
    assert type(found) is kind
    assert (found.reason if isinstance(found, Unjudged) else found.observed) == text


def test_statuses_of_a_finding_are_short() -> None:
    found = judge_pair(pair(p2p_read="CNS", p2p_write="NS"), gpus(2), REMEDY)
    assert isinstance(found, Finding)
    assert found.brief == "no peer access (CNS/NS)"
    assert describe(pair(p2p_read="DR", p2p_write="DR")).endswith("DR (disabled by a registry key)")


@cases((("GeForce", "H100"), True), (("H100", "H100"), False), ((None, "H100"), None), ((None, "GeForce"), True))
def test_pair_with_a_geforce(names: tuple[str | None, str | None], *, expected: bool | None) -> None:
    found = gpus(3, *(gpu(index, name=name) for index, name in enumerate(names)), gpu(2, name="GeForce"))
    assert geforce(pair(0, 1), found) is expected
