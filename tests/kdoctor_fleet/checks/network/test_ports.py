"""The checks of RDMA ports: their state, rate and errors, and the MTU of their interfaces and of paths to hosts."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import device, network, port, two_hosts
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.mtu import mtu
from kdoctor_fleet.checks.network.port_errors import port_errors
from kdoctor_fleet.checks.network.port_rate import port_rate
from kdoctor_fleet.checks.network.port_state import port_state
from kdoctor_fleet.facts import JobHosts, NetworkInterface, RdmaDevice

OTHER = "worker 1 (node2:2222)"
DOWN = {"state": "DOWN", "physical_state": "Polling"}
SLOW = {"rate_gbits": 100.0, "speed": "EDR"}
UNCOUNTED = dict.fromkeys(("link_downed", "symbol_errors", "receive_errors"))


def ports(check: Any, *ports_of: Any, hosts: Any = None, **parameters: Any) -> Result:
    machine = network(*(device(index, *found) for index, found in enumerate(ports_of)))
    return compute_check(check, machine, environment(), hosts or JobHosts(), **parameters)


@pytest.mark.parametrize("check", [port_rate, port_errors, port_state])
def test_device_without_ports_and_port_without_state_are_unknown(check: Any) -> None:
    machine = network(device(0), replace(device(1), ports=()), device(2, port(state=None)))
    result = compute_check(check, machine, environment(), JobHosts())
    assert {item.subject: item.reason for item in result.unjudged} == {
        "mlx5_1": "its ports were not read",
        "mlx5_2 port 1": "its state was not read",
    }
    assert [item.subject for item in result.evidence] == ["mlx5_0 port 1"]


@pytest.mark.parametrize("check", [port_errors, port_rate, port_state])
def test_machine_without_rdma_is_skipped_with_the_reason(check: Any) -> None:
    result = ports(check)
    assert result.reason == "this machine has no RDMA device (InfiniBand, RoCE or EFA)"


@cases(
    ({}, "ACTIVE, 400 Gbit/s (4X NDR), InfiniBand"),
    ({"lanes": None}, "ACTIVE, 400 Gbit/s (NDR), InfiniBand"),
    ({"speed": None}, "ACTIVE, 400 Gbit/s (4X), InfiniBand"),
    ({"lanes": None, "speed": None, "rate_gbits": None}, "ACTIVE, rate unknown, InfiniBand"),
    ({"link_layer": None}, "ACTIVE, 400 Gbit/s (4X NDR), link layer unknown"),
    (DOWN, "DOWN (Polling); no port of such a card is active"),
    ({"state": "DOWN", "physical_state": None}, "DOWN (physical state unknown); no port of such a card is active"),
)
def test_state_of_a_port_is_stated(changes: dict[str, Any], stated: str) -> None:
    result = ports(port_state, [port(**changes)])
    assert (result.status, said(result)) == (Status.PASS, {"mlx5_0 port 1": stated})
    short = stated.removeprefix("ACTIVE, ").replace("), ", ") ").replace("unknown, ", "unknown ")
    assert briefs(result) == [short if "ACTIVE" in stated else ""]


@cases(
    (DOWN, 1, "DOWN (Polling); mlx5_1 port 1 is active", "DOWN (Polling)"),
    (DOWN, 2, "DOWN (Polling); 2 equal ports are active", "DOWN (Polling)"),
    ({**DOWN, "physical_state": None}, 1, "DOWN (physical state unknown); mlx5_1 port 1 is active", "DOWN"),
    ({"state": "INIT"}, 0, "INIT (LinkUp)", "INIT (LinkUp)"),
)
def test_inactive_port_fails_with_its_equals(changes: dict[str, Any], active: int, stated: str, brief: str) -> None:
    result = ports(port_state, [port(**changes)], *[[port()]] * active)
    assert (result.status, said(result)["mlx5_0 port 1"], briefs(result)[0]) == (Status.FAIL, stated, brief)


def test_subnet_manager_is_missing_only_if_the_link_is_up_and_not_configured() -> None:
    def summary(**changes: Any) -> str:
        (found,) = ports(port_state, [port(**changes)], [port()]).findings
        return found.finding.remedy.summary

    assert "opensm" in summary(state="INIT")
    assert "opensm" not in summary(state="ARMED")
    assert "opensm" not in summary(state="INIT", physical_state="Polling")


def test_port_of_another_number_or_card_is_not_equal() -> None:
    assert ports(port_state, [port(), port(number=2, **DOWN)], [port()]).findings == ()
    cards = network(device(0), device(1, port(**DOWN), board="other"))
    assert compute_check(port_state, cards, environment(), two_hosts()).findings == ()


@cases(("mlx5_0", Status.FAIL), ("^mlx5_0", Status.PASS), ("mlx5_1", Status.PASS))
def test_port_that_nccl_shall_use_must_be_active(value: str, status: Status) -> None:
    both = network(device(0, port(**DOWN), board="a"), device(1, board="b"))
    result = compute_check(port_state, both, environment(NCCL_IB_HCA=value), JobHosts())
    assert result.status is status
    left_out = said(result)["mlx5_0 port 1"] == "DOWN (Polling); not selected by NCCL_IB_HCA"
    assert left_out is (status is Status.PASS)


def test_job_over_machines_needs_an_active_port() -> None:
    alone = replace(two_hosts(), hosts=two_hosts().hosts[:1])
    assert ports(port_state, [port(**DOWN)], hosts=alone).status is Status.PASS
    assert ports(port_state, [port(**DOWN)], hosts=two_hosts()).status is Status.FAIL


@cases(
    (device(1), Status.PASS),
    (device(1, port(**SLOW)), Status.FAIL),
    (device(1, port(**SLOW), board="another card"), Status.PASS),
    (device(1, port(**SLOW), board=None), Status.PASS),
    (device(1, port(link_layer="Ethernet", **SLOW)), Status.PASS),
    (device(1, port(state="DOWN", **SLOW)), Status.PASS),
    (device(1, port(lanes=1, rate_gbits=100.0), board="another card"), Status.FAIL),
    (device(1, port(lanes=2), board="splitter"), Status.PASS),
    (device(1, port(rate_gbits=None)), Status.UNKNOWN),
)
def test_rate_is_compared_with_equal_cards(second: RdmaDevice, status: Status) -> None:
    result = compute_check(port_rate, network(device(0), second), environment())
    assert result.status is status
    assert {item.finding.subject for item in result.findings} <= {"mlx5_1 port 1"}


def test_rate_is_compared_with_the_fastest_of_several_ports() -> None:
    result = ports(port_rate, [port(**SLOW)], [port()], [port(**SLOW)])
    equals = "no equal port is faster (2 compared)"
    assert said(result) == {
        "mlx5_0 port 1": "100 Gbit/s (4X EDR)",
        "mlx5_2 port 1": "100 Gbit/s (4X EDR)",
        "mlx5_1 port 1": f"400 Gbit/s (4X NDR); {equals}",
    }
    assert {item.finding.expected for item in result.findings} == {"400 Gbit/s, as on the other ports of such a card"}
    assert said(ports(port_rate, [port()])) == {"mlx5_0 port 1": "400 Gbit/s (4X NDR); no equal port to compare"}
    assert briefs(ports(port_rate, [port(lanes=1)]))[0] == "uses 1 lane"
    assert ports(port_rate, [port(lanes=1, link_layer="Ethernet")]).status is Status.PASS
    assert ports(port_rate, [port(state="DOWN")]).status is Status.SKIP


@cases(
    ({}, "0 link downs, 0 symbol errors, 0 receive errors", ""),
    ({"link_downed": None}, "0 symbol errors, 0 receive errors", ""),
    ({"link_downed": 10}, "10 link downs, 0 symbol errors, 0 receive errors", ""),
    ({"symbol_errors": 1000, "receive_errors": 1000}, "0 link downs, 1000 symbol errors, 1000 receive errors", ""),
    ({"link_downed": 11}, "11 link downs, 0 symbol errors, 0 receive errors", "at most 10 link downs"),
    (
        {"symbol_errors": 1001, "receive_errors": 2000},
        "0 link downs, 1001 symbol errors, 2000 receive errors",
        "at most 1000 symbol errors, 1000 receive errors",
    ),
)
def test_counters_are_limited(counts: dict[str, int | None], stated: str, expected: str) -> None:
    result = ports(port_errors, [port(**UNCOUNTED)], [port()], [port(**counts)])
    assert said(result)["mlx5_2 port 1"] == stated
    assert [judged.finding.expected for judged in result.findings] == [expected] * bool(expected)
    assert [item.subject for item in result.unjudged] == ["mlx5_0 port 1"]
    for judged in result.findings:
        assert "/mlx5_2/ports/1/counters/*" in judged.finding.remedy.look[0]


@pytest.mark.parametrize("limit", ["most_link_downs", "most_symbol_errors", "most_receive_errors"])
def test_checklist_sets_each_limit(limit: str) -> None:
    found = [port(link_downed=1, symbol_errors=1, receive_errors=1)]
    (judged,) = ports(port_errors, found, **{limit: 0}).findings
    assert judged.finding.expected.startswith("at most 0 ")
    assert ports(port_errors, found, **{limit: 1}).status is Status.PASS


def test_counters_of_an_inactive_port_are_not_judged() -> None:
    assert ports(port_errors, [port(state="DOWN", link_downed=99)]).status is Status.SKIP


def roce(*sizes: int | None) -> Any:
    devices = [device(index, port(link_layer="Ethernet", interface=f"eth{index}")) for index in range(len(sizes))]
    found = tuple(NetworkInterface(name=f"eth{index}", mtu=size) for index, size in enumerate(sizes))
    return network(*devices, interfaces=found)


@cases(
    ((4200, 4200), Status.PASS, {}),
    ((1500,), Status.PASS, {}),
    ((4200, 1500), Status.FAIL, {"eth1": "4200 bytes"}),
    ((1499,), Status.FAIL, {"eth0": "1500 bytes"}),
    ((4200, None), Status.UNKNOWN, {}),
)
def test_interfaces_of_roce_ports_are_compared(sizes: Any, status: Status, expected: dict[str, str]) -> None:
    outcomes = list(mtu.function(roce(*sizes), JobHosts(), environment()))
    assert len(outcomes) == len(sizes)
    result = compute_check(mtu, roce(*sizes), JobHosts(), environment())
    assert result.status is status
    found = {item.finding.subject: item.finding.expected.partition(",")[0] for item in result.findings}
    assert found == expected
    stated = {f"eth{index}": f"MTU {size}" if size else "its MTU was not read" for index, size in enumerate(sizes)}
    assert said(result) == stated


def test_interface_that_is_not_listed_is_unknown() -> None:
    found = replace(roce(4200, 4200), interfaces=(NetworkInterface(name="eth0", mtu=4200),))
    stated = {"eth0": "MTU 4200", "eth1": "its MTU was not read"}
    assert said(compute_check(mtu, found, JobHosts(), environment())) == stated


@cases({"state": "DOWN"}, {"link_layer": "InfiniBand"}, {"interface": None}, ids=["down", "InfiniBand", "none"])
def test_interface_that_carries_nothing_of_the_job_is_not_judged(other: dict[str, Any]) -> None:
    found = roce(4200, 1500)
    quiet = replace(found.rdma[1].ports[0], **other)
    result = compute_check(mtu, replace(found, rdma=(found.rdma[0], device(1, quiet))), JobHosts(), environment())
    assert said(result) == {"eth0": "MTU 4200"}
    chosen = compute_check(mtu, found, JobHosts(), environment(NCCL_IB_HCA="mlx5_0"))
    assert said(chosen) == {"eth0": "MTU 4200"}
    for hosts in ([JobHosts()], []):
        assert compute_check(mtu, network(device(0)), *hosts, environment()).status is Status.SKIP


@cases(
    ({}, {OTHER: "MTU 9000"}),
    ({"path_mtu": 1450}, {OTHER: "its path takes packets of 1450 bytes, the interface sends 9000"}),
    ({"path_mtu": 1460, "interface_mtu": 1460}, {OTHER: "MTU 1460"}),
    ({"path_mtu": 1450, "interface_mtu": None}, {OTHER: "MTU 1450"}),
    ({"path_mtu": None}, {}),
    ({"local": True, "path_mtu": 1400}, {}),
)
def test_path_to_a_host_is_compared_with_the_interface(other: dict[str, Any], stated: dict[str, str]) -> None:
    result = compute_check(mtu, network(), two_hosts(other=other), environment())
    assert said(result) == stated
    assert bool(result.findings) == ("takes" in stated.get(OTHER, ""))
    assert (result.status is Status.SKIP) == (not stated)
