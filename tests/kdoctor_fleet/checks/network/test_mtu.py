from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port, two_hosts
from kdoctor.model import Evidence, Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.mtu import mtu
from kdoctor_fleet.facts import JobHosts, NetworkInterface


def roce(*sizes: int | None) -> Any:
    devices = [device(index, port(link_layer="Ethernet", interface=f"eth{index}")) for index in range(len(sizes))]
    return network(
        *devices, interfaces=tuple(NetworkInterface(name=f"eth{index}", mtu=size) for index, size in enumerate(sizes))
    )


@pytest.mark.parametrize(
    ("sizes", "status", "named"),
    [
        ((4200, 4200), Status.PASS, []),
        ((4200, 1500), Status.FAIL, ["eth1"]),
        ((1400,), Status.FAIL, ["eth0"]),
        ((4200, None), Status.UNKNOWN, []),
    ],
)
def test_interfaces_of_roce_ports_are_compared(sizes: tuple[int, ...], status: Status, named: list[str]) -> None:
    result = compute_check(mtu, roce(*sizes), JobHosts(), environment())
    assert result.status is status
    assert [item.finding.subject for item in result.findings] == named


def test_interfaces_are_judged_without_other_hosts() -> None:
    outcomes = list(mtu.function(roce(4200, 4200), JobHosts(), environment()))
    assert [type(outcome) for outcome in outcomes] == [Evidence, Evidence]


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({}, Status.PASS),
        ({"path_mtu": 1450}, Status.FAIL),
        ({"path_mtu": 1460, "interface_mtu": 1460}, Status.PASS),
        ({"path_mtu": None}, Status.SKIP),
        ({"local": True, "path_mtu": 1400}, Status.SKIP),
    ],
)
def test_path_to_a_host_is_compared_with_the_interface(other: dict[str, Any], status: Status) -> None:
    assert compute_check(mtu, network(), two_hosts(other=other), environment()).status is status


def test_machine_without_roce_and_other_hosts_is_skipped() -> None:
    assert compute_check(mtu, network(device(0)), JobHosts(), environment()).status is Status.SKIP
