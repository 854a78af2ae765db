from __future__ import annotations

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import network
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.nccl_interfaces import nccl_interfaces
from kdoctor_fleet.facts import NetworkInterface

NAMES = {"bond0": True, "eth0": True, "eth1": False, "lo": None}
MACHINE = network(interfaces=tuple(NetworkInterface(name=name, up=up) for name, up in NAMES.items()))


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("eth", Status.PASS),
        ("=eth0", Status.PASS),
        ("eth1,bond", Status.PASS),
        ("^lo,docker", Status.PASS),
        ("lo", Status.PASS),
        ("=eth", Status.FAIL),
        ("ens1f0", Status.FAIL),
        ("eth1", Status.FAIL),
        ("^bond,eth,lo", Status.FAIL),
    ],
)
def test_an_interface_must_be_left(value: str, status: Status) -> None:
    assert compute_check(nccl_interfaces, environment(NCCL_SOCKET_IFNAME=value), MACHINE).status is status


def test_unset_variable_is_skipped_and_missing_facts_are_unknown() -> None:
    assert compute_check(nccl_interfaces, environment(), MACHINE).status is Status.SKIP
    named = environment(NCCL_SOCKET_IFNAME="eth0")
    assert compute_check(nccl_interfaces, named).status is Status.UNKNOWN
    assert compute_check(nccl_interfaces, named, network(interfaces=None)).status is Status.UNKNOWN
