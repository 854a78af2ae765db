"""The limits of the checks of the network, and the numbers and names that they state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import environment, gpu, gpus, host, lost_gpu, pci_gpu
from helpers.kdoctor_fleet.rdma import device, network, port, two_hosts
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import Kernel, KernelDriver, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network._rdma import Listed, parse_list
from kdoctor_fleet.checks.network.clock import clock
from kdoctor_fleet.checks.network.firmware_match import firmware_match
from kdoctor_fleet.checks.network.gpu_affinity import gpu_affinity
from kdoctor_fleet.checks.network.gpudirect import gpudirect
from kdoctor_fleet.checks.network.hosts_reachable import hosts_reachable
from kdoctor_fleet.checks.network.hosts_resolve import hosts_resolve
from kdoctor_fleet.checks.network.hosts_reverse import hosts_reverse
from kdoctor_fleet.checks.network.mtu import mtu
from kdoctor_fleet.checks.network.nccl_devices import nccl_devices
from kdoctor_fleet.checks.network.nccl_interfaces import nccl_interfaces
from kdoctor_fleet.checks.network.pcie_link import pcie_link
from kdoctor_fleet.checks.network.port_errors import port_errors
from kdoctor_fleet.checks.network.port_free import port_free
from kdoctor_fleet.checks.network.port_rate import port_rate
from kdoctor_fleet.checks.network.port_state import port_state
from kdoctor_fleet.facts import JobHosts, NetworkInterface

OWN, OTHER = "worker 0 (node1:2222)", "worker 1 (node2:2222)"
DOWN = {"state": "DOWN", "physical_state": "Polling"}
SLOW = {"rate_gbits": 100.0, "speed": "EDR"}
OLD = "28.36.1010"


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        (None, None),
        (" ", None),
        ("^", None),
        ("mlx5_0, mlx5_1:2", Listed(exclude=False, exact=False, entries=("mlx5_0", "mlx5_1:2"))),
        ("=mlx5_0", Listed(exclude=False, exact=True, entries=("mlx5_0",))),
        ("^=mlx5_0", Listed(exclude=True, exact=True, entries=("mlx5_0",))),
    ],
)
def test_list_is_read_as_nccl_does(value: str | None, parsed: Listed | None) -> None:
    """From NCCL's documentation of NCCL_IB_HCA: ``^`` excludes, ``=`` compares whole names."""
    assert parse_list(value) == parsed


@pytest.mark.parametrize(
    ("entry", "number", "named"),
    [("mlx5_0", 2, True), ("mlx5_0:1", 1, True), ("mlx5_0:1", 2, False), ("mlx5", 1, False)],
)
def test_entry_names_a_device_or_one_of_its_ports(entry: str, number: int, *, named: bool) -> None:
    assert Listed(exclude=False, exact=True, entries=(entry,)).names(entry, "mlx5_0", number) is named
    assert Listed(exclude=True, exact=True, entries=(entry,)).selects("mlx5_0", number) is not named


def hosts(check: Any, own: dict[str, Any] | None = None, other: dict[str, Any] | None = None) -> Result:
    return compute_check(check, two_hosts(own, other), environment())


UNTRIED = "the connection was not tried or did not end"


@pytest.mark.parametrize(
    ("check", "change", "stated"),
    [
        (hosts_reachable, {"state": "connected"}, "a program listens on its port"),
        (hosts_reachable, {"state": "refused"}, "the host answers, its port is free"),
        (hosts_reachable, {"state": "timed-out", "error": "no answer in 4 s"}, "cannot be reached (no answer in 4 s)"),
        (hosts_reachable, {"state": "unreachable", "error": None}, "cannot be reached (unreachable)"),
        (hosts_reachable, {"state": None, "resolved": False}, "it has no address"),
        (hosts_reachable, {"state": None, "resolved": True}, UNTRIED),
        (hosts_reachable, {"state": None, "resolved": None}, UNTRIED),
        (hosts_resolve, {"resolved": False, "error": "not known"}, "has no address (not known)"),
        (hosts_resolve, {"resolved": False}, "has no address (no reason given)"),
        (hosts_reverse, {"resolved": False}, "it has no address"),
        (hosts_reverse, {"resolves_back": None}, "the name server did not answer"),
        (hosts_reverse, {"resolved": None, "resolves_back": True}, "the name server did not answer"),
    ],
)
def test_state_of_another_host_is_stated(check: Any, change: dict[str, Any], stated: str) -> None:
    assert said(hosts(check, other=change))[OTHER] == stated


def test_finding_about_a_host_has_its_address_in_the_command() -> None:
    unreachable = hosts(hosts_reachable, other={"state": "timed-out"}).findings[0].finding
    assert "nc -vz -w 5 node2 2222" in unreachable.remedy.look
    assert unreachable.headline == "does not answer"
    assert hosts(hosts_reachable, other={"state": "unreachable"}).findings[0].finding.headline == "cannot be reached"
    unnamed = hosts(hosts_resolve, other={"resolved": False}).findings[0].finding
    assert "getent ahosts node2" in unnamed.remedy.look
    taken = hosts(port_free, own={"port_free": False, "error": "Address already in use"}).findings[0].finding
    assert (taken.subject, taken.observed) == (OWN, "port 2222 cannot be opened (Address already in use)")
    assert "ss -ltnp 'sport = :2222'" in taken.remedy.look
    assert said(hosts(port_free, own={"port_free": False}))[OWN] == "port 2222 cannot be opened (no reason given)"
    assert said(hosts(port_free)) == {OWN: "port 2222 is free"}


@pytest.mark.parametrize(
    ("clocks", "stated", "status"),
    [
        ({"clock_offset_s": 0.1}, "synchronized (chronyc), 0.1 s from its time servers", Status.PASS),
        ({"clock_offset_s": -0.1}, "synchronized (chronyc), 0.1 s from its time servers", Status.PASS),
        ({"clock_offset_s": 0.101}, "0.101 s from its time servers", Status.FAIL),
        ({"clock_offset_s": -0.5}, "0.5 s from its time servers", Status.FAIL),
        ({"clock_offset_s": None}, "synchronized (chronyc)", Status.PASS),
        ({"clock_synchronized": False}, "not synchronized (chronyc)", Status.FAIL),
    ],
)
def test_offset_of_the_clock_is_stated(clocks: dict[str, Any], stated: str, status: Status) -> None:
    result = compute_check(clock, two_hosts(**clocks), environment())
    assert (said(result), result.status) == ({"clock": stated}, status)
    assert result.severity is Severity.WARNING


def roce(*sizes: int | None) -> Any:
    devices = [device(index, port(link_layer="Ethernet", interface=f"eth{index}")) for index in range(len(sizes))]
    found = tuple(NetworkInterface(name=f"eth{index}", mtu=size) for index, size in enumerate(sizes))
    return network(*devices, interfaces=found)


def test_mtu_is_compared_with_the_largest() -> None:
    result = compute_check(mtu, roce(4200, 1500, None), JobHosts(), environment())
    assert said(result) == {"eth0": "MTU 4200", "eth1": "MTU 1500", "eth2": "its MTU was not read"}
    assert result.findings[0].finding.expected.startswith("4200 bytes")
    assert compute_check(mtu, roce(1499), JobHosts(), environment()).findings[0].finding.expected.startswith("1500 ")
    assert compute_check(mtu, roce(1500), JobHosts(), environment()).status is Status.PASS


def test_interface_that_is_not_listed_is_unknown() -> None:
    found = replace(roce(4200, 4200), interfaces=(NetworkInterface(name="eth0", mtu=4200),))
    assert said(compute_check(mtu, found, JobHosts(), environment())) == {
        "eth0": "MTU 4200",
        "eth1": "its MTU was not read",
    }


@pytest.mark.parametrize(
    "other", [{"state": "DOWN"}, {"link_layer": "InfiniBand"}, {"interface": None}], ids=["down", "InfiniBand", "none"]
)
def test_interface_that_carries_nothing_of_the_job_is_not_judged(other: dict[str, Any]) -> None:
    found = roce(4200, 1500)
    quiet = replace(found.rdma[1].ports[0], **other)
    result = compute_check(mtu, replace(found, rdma=(found.rdma[0], device(1, quiet))), JobHosts(), environment())
    assert said(result) == {"eth0": "MTU 4200"}
    chosen = compute_check(mtu, found, JobHosts(), environment(NCCL_IB_HCA="mlx5_0"))
    assert said(chosen) == {"eth0": "MTU 4200"}


def test_path_to_a_host_is_stated() -> None:
    def judged(**other: Any) -> dict[str, str]:
        return said(compute_check(mtu, network(), two_hosts(other=other), environment()))

    assert judged(path_mtu=1450, interface_mtu=9000) == {
        OTHER: "its path takes packets of 1450 bytes, the interface sends 9000"
    }
    assert judged(path_mtu=1450, interface_mtu=None) == {OTHER: "MTU 1450"}


MACHINE = network(device(0), device(1, port(), port(number=2)), device(10))


@pytest.mark.parametrize(
    ("value", "stated"),
    [
        ("mlx5_1", "'mlx5_1' selects 3 ports of 4"),
        ("^=mlx5_7", "'^=mlx5_7' selects 4 ports of 4"),
        ("=mlx5_10", "'=mlx5_10' selects 1 port of 4"),
        ("=mlx5_0,=mlx5_7", "'=mlx5_0,=mlx5_7': =mlx5_7 does not exist"),
        ("=mlx5_0,mlx5_7", "'=mlx5_0,mlx5_7': mlx5_7 does not exist"),
        ("^mlx5", "'^mlx5': it leaves no port"),
        ("^mlx5,ibp", "'^mlx5,ibp': it leaves no port"),
    ],
)
def test_ports_that_a_list_selects_are_counted(value: str, stated: str) -> None:
    text = said(compute_check(nccl_devices, environment(NCCL_IB_HCA=value), MACHINE))["NCCL_IB_HCA"]
    assert text.startswith(stated)
    assert (" left" in text) == ("selects" not in text)


def test_finding_about_a_list_names_what_exists() -> None:
    result = compute_check(nccl_devices, environment(NCCL_IB_HCA="=mlx5_0,mlx5_7"), MACHINE)
    assert said(result)["NCCL_IB_HCA"].endswith("1 port left")
    assert "mlx5_10" in said(result)["NCCL_IB_HCA"]
    assert result.findings[0].finding.rollback.commands == ("export NCCL_IB_HCA==mlx5_0,mlx5_7",)
    bare = compute_check(nccl_devices, environment(NCCL_IB_HCA="mlx5_0"), network())
    assert "no RDMA device" in said(bare)["NCCL_IB_HCA"]
    assert briefs(bare) == ["names RDMA devices that do not exist"]
    assert briefs(compute_check(nccl_devices, environment(NCCL_IB_HCA="^mlx5"), MACHINE)) == ["leaves no RDMA port"]


@pytest.mark.parametrize(
    ("value", "brief"), [("eth1", "names no interface that is up"), ("ens9", "names no existing interface")]
)
def test_interfaces_that_a_list_selects_are_named(value: str, brief: str) -> None:
    names = {"eth0": True, "eth1": False}
    machine = network(interfaces=tuple(NetworkInterface(name=name, up=up) for name, up in names.items()))
    result = compute_check(nccl_interfaces, environment(NCCL_SOCKET_IFNAME=value), machine)
    assert briefs(result) == [brief]
    assert "eth0, eth1" in said(result)["NCCL_SOCKET_IFNAME"].replace(" and ", ", ")
    assert ("eth1 is down" in said(result)["NCCL_SOCKET_IFNAME"]) == (value == "eth1")
    assert result.findings[0].finding.rollback.commands == (f"export NCCL_SOCKET_IFNAME={value}",)


def link(**changes: Any) -> Result:
    return compute_check(pcie_link, network(device(0, **changes)))


MLX5_0 = f"mlx5_0 ({device(0).bus_id})"


@pytest.mark.parametrize(
    ("changes", "subject", "stated"),
    [
        ({}, MLX5_0, "x16, generation 5"),
        ({"bus_id": None}, "mlx5_0", "x16, generation 5"),
        ({"link_speed": None}, MLX5_0, "x16, generation unknown"),
        ({"link_width": 8}, MLX5_0, "x8, generation 5"),
    ],
)
def test_link_of_a_card_is_stated(changes: dict[str, Any], subject: str, stated: str) -> None:
    assert said(link(**changes)) == {subject: stated}


@pytest.mark.parametrize(
    ("changes", "expected", "brief"),
    [
        ({"link_width": 8}, "x16, generation 5, ", "narrower"),
        ({"link_width": 4, "slot_width_max": 8}, "x8, generation 5, ", "narrower"),
        ({"link_width": 8, "slot_width_max": None}, "x16, generation 5, ", "narrower"),
        ({"link_speed": "8.0 GT/s PCIe", "slot_speed_max": "16.0 GT/s PCIe"}, "x16, generation 4, ", "slower"),
        ({"link_width": 8, "link_speed_max": None, "slot_speed_max": None}, "x16, as ", "narrower"),
    ],
)
def test_link_is_expected_as_card_and_slot_support(changes: dict[str, Any], expected: str, brief: str) -> None:
    (found,) = link(**changes).findings
    assert found.finding.expected.startswith(expected)
    assert brief in found.finding.headline
    assert f"-s {device(0).bus_id}" in found.finding.remedy.look[0]


def test_cards_without_a_link_are_unknown_next_to_others() -> None:
    result = compute_check(pcie_link, network(device(0), device(1, link_width=None), device(2, link_width=0)))
    assert [item.subject for item in result.unjudged] == ["mlx5_1"]  # width 0: a virtual function
    assert len(result.evidence) == 1


def ports(check: Any, *ports_of: Any, facts: Any = None, **parameters: Any) -> Result:
    machine = network(*(device(index, *found) for index, found in enumerate(ports_of)))
    return compute_check(check, machine, environment(), *(facts or ()), **parameters)


@pytest.mark.parametrize("check", [port_rate, port_errors, port_state])
def test_device_without_ports_and_port_without_state_are_unknown(check: Any) -> None:
    machine = network(device(0), replace(device(1), ports=()), device(2, port(state=None)))
    result = compute_check(check, machine, environment(), JobHosts())
    assert {item.subject: item.reason for item in result.unjudged} == {
        "mlx5_1": "its ports were not read",
        "mlx5_2 port 1": "its state was not read",
    }
    assert [item.subject for item in result.evidence] == ["mlx5_0 port 1"]


@pytest.mark.parametrize(
    ("changes", "stated"),
    [
        ({}, "ACTIVE, 400 Gbit/s (4X NDR), InfiniBand"),
        ({"lanes": None}, "ACTIVE, 400 Gbit/s (NDR), InfiniBand"),
        ({"speed": None}, "ACTIVE, 400 Gbit/s (4X), InfiniBand"),
        ({"lanes": None, "speed": None, "rate_gbits": None}, "ACTIVE, rate unknown, InfiniBand"),
        ({"link_layer": None}, "ACTIVE, 400 Gbit/s (4X NDR), link layer unknown"),
        (DOWN, "DOWN (Polling); no port of such a card is active"),
        ({"state": "DOWN", "physical_state": None}, "DOWN (physical state unknown); no port of such a card is active"),
    ],
)
def test_state_of_a_port_is_stated(changes: dict[str, Any], stated: str) -> None:
    assert said(ports(port_state, [port(**changes)], facts=[JobHosts()])) == {"mlx5_0 port 1": stated}


@pytest.mark.parametrize(
    ("changes", "active", "stated", "brief"),
    [
        (DOWN, 1, "DOWN (Polling); mlx5_1 port 1 is active", "DOWN (Polling)"),
        (DOWN, 3, "DOWN (Polling); 3 equal ports are active", "DOWN (Polling)"),
        ({**DOWN, "physical_state": None}, 1, "DOWN (physical state unknown); mlx5_1 port 1 is active", "DOWN"),
        ({"state": "INIT"}, 0, "INIT (LinkUp)", "INIT (LinkUp)"),
    ],
)
def test_inactive_port_is_stated_with_its_equals(changes: dict[str, Any], active: int, stated: str, brief: str) -> None:
    result = ports(port_state, [port(**changes)], *[[port()]] * active, facts=[JobHosts()])
    assert said(result)["mlx5_0 port 1"] == stated
    assert briefs(result)[0] == brief


def test_subnet_manager_is_missing_only_if_the_link_is_up_and_not_configured() -> None:
    def summary(**changes: Any) -> str:
        (found,) = ports(port_state, [port(**changes)], [port()], facts=[JobHosts()]).findings
        return found.finding.remedy.summary

    assert "opensm" in summary(state="INIT")
    assert "opensm" not in summary(state="ARMED")
    assert "opensm" not in summary(state="INIT", physical_state="Polling")


def test_port_of_another_number_is_not_equal() -> None:
    result = ports(port_state, [port(), port(number=2, **DOWN)], [port()], facts=[JobHosts()])
    assert result.findings == ()


def test_job_on_one_machine_needs_no_port() -> None:
    alone = two_hosts()
    alone = replace(alone, hosts=alone.hosts[:1])
    assert ports(port_state, [port(**DOWN)], facts=[alone]).findings == ()
    assert len(ports(port_state, [port(**DOWN)], facts=[two_hosts()]).findings) == 1


def test_port_that_is_not_selected_is_named_with_the_variable() -> None:
    machine = network(device(0), device(1, port(**DOWN)))
    result = compute_check(port_state, machine, environment(NCCL_IB_HCA="mlx5_0"), JobHosts())
    assert said(result)["mlx5_1 port 1"] == "DOWN (Polling); not selected by NCCL_IB_HCA"


def test_rates_are_compared_with_the_fastest_equal_port() -> None:
    result = ports(port_rate, [port()], [port(**SLOW)], [port()])
    assert said(result) == {
        "mlx5_1 port 1": "100 Gbit/s (4X EDR)",
        "mlx5_0 port 1": "400 Gbit/s (4X NDR); no equal port is faster (2 compared)",
        "mlx5_2 port 1": "400 Gbit/s (4X NDR); no equal port is faster (2 compared)",
    }
    assert result.findings[0].finding.expected.startswith("400 Gbit/s")
    assert said(ports(port_rate, [port()])) == {"mlx5_0 port 1": "400 Gbit/s (4X NDR); no equal port to compare"}
    assert briefs(ports(port_rate, [port(lanes=1)]))[0] == "uses 1 lane"
    assert ports(port_rate, [port(lanes=1, link_layer="Ethernet")]).status is Status.PASS


@pytest.mark.parametrize(
    ("counts", "stated", "expected"),
    [
        ({}, "0 link downs, 0 symbol errors, 0 receive errors", ""),
        ({"link_downed": None}, "0 symbol errors, 0 receive errors", ""),
        ({"symbol_errors": 1000, "receive_errors": 1000}, "0 link downs, 1000 symbol errors, 1000 receive errors", ""),
        ({"link_downed": 11}, "11 link downs, 0 symbol errors, 0 receive errors", "at most 10 link downs"),
        (
            {"symbol_errors": 1001, "receive_errors": 2000},
            "0 link downs, 1001 symbol errors, 2000 receive errors",
            "at most 1000 symbol errors, 1000 receive errors",
        ),
    ],
)
def test_counters_are_stated(counts: dict[str, int | None], stated: str, expected: str) -> None:
    result = ports(port_errors, [port(**counts)], [port(**dict.fromkeys(("link_downed", *_ERRORS)))])
    assert said(result)["mlx5_0 port 1"] == stated
    assert [judged.finding.expected for judged in result.findings] == [expected] * bool(expected)
    assert [item.subject for item in result.unjudged] == ["mlx5_1 port 1"]
    for judged in result.findings:
        assert "/mlx5_0/ports/1/counters/*" in judged.finding.remedy.look[0]


_ERRORS = ("symbol_errors", "receive_errors")


@pytest.mark.parametrize("limit", ["most_link_downs", "most_symbol_errors", "most_receive_errors"])
def test_checklist_sets_each_limit(limit: str) -> None:
    found = [port(link_downed=1, symbol_errors=1, receive_errors=1)]
    (judged,) = ports(port_errors, found, **{limit: 0}).findings
    assert judged.finding.expected.startswith("at most 0 ")
    assert ports(port_errors, found, **{limit: 1}).status is Status.PASS


def test_usual_firmware_is_that_of_most_cards() -> None:
    result = compute_check(firmware_match, network(device(0), device(1, firmware=OLD), device(2), device(3, board="x")))
    new = device(0).firmware
    assert said(result) == {
        "mlx5_1": f"firmware {OLD}; equal cards have {new} on 2, {OLD} on 1",
        "mlx5_0": f"firmware {new}, as on 2 cards",
        "mlx5_2": f"firmware {new}, as on 2 cards",
    }
    assert result.findings[0].finding.expected == f"firmware {new}"
    tied = compute_check(firmware_match, network(device(0), device(1, firmware=OLD)))
    assert {judged.finding.expected for judged in tied.findings} == {"one version on all equal cards"}


def test_firmware_of_a_card_of_an_unknown_board_is_unknown() -> None:
    cards = network(device(0), device(1), device(2, board=None), device(3, board=None, firmware=None))
    assert [item.subject for item in compute_check(firmware_match, cards).unjudged] == ["mlx5_2"]


@pytest.mark.parametrize(
    ("path", "node", "words"),
    [
        (device(0).path, 0, "same PCIe switch"),
        (("0000:0c:01.0",), 0, "same host bridge"),
        (("0000:77:00.0",), 0, "same NUMA node"),
        (("0000:77:00.0",), 1, "on another NUMA node"),
    ],
)
def test_distance_to_the_nearest_device_is_stated(path: Any, node: int, words: str) -> None:
    place = pci_gpu(0)
    facts = gpus(1, gpu(0)), PciDevices(devices=(place,)), environment()
    result = compute_check(gpu_affinity, network(device(0, path=path, numa_node=node)), *facts)
    assert [item.observed for item in result.evidence] == [f"nearest is mlx5_0: {words}"]


@pytest.mark.parametrize(
    ("flavour", "version", "stated"),
    [
        ("open", "570.158.01", "DMA-BUF: open kernel modules 570.158.01 on Linux 6.8"),
        ("open", None, "DMA-BUF: open kernel modules on Linux 6.8"),
        ("proprietary", "570.158.01", "nvidia-peermem is not loaded; proprietary kernel modules on Linux 6.8"),
    ],
)
def test_way_into_gpu_memory_is_stated(flavour: Any, version: str | None, stated: str) -> None:
    driver = KernelDriver(loaded=True, version=version, flavour=flavour)
    facts = Kernel(modules=("nvidia",)), driver, host(kernel="6.8.0-60-generic"), environment()
    assert said(compute_check(gpudirect, network(device(0)), *facts)) == {"GPUDirect RDMA": stated}


def test_ports_after_one_without_counters_are_judged() -> None:
    silent = dict.fromkeys(("link_downed", *_ERRORS))
    result = ports(port_errors, [port(**silent)], [port(link_downed=99)], [port()])
    assert [item.subject for item in result.unjudged] == ["mlx5_0 port 1"]
    assert [item.finding.subject for item in result.findings] == ["mlx5_1 port 1"]
    assert [item.subject for item in result.evidence] == ["mlx5_2 port 1"]


def test_job_whose_tasks_are_all_here_needs_no_other_host() -> None:
    both = hosts(hosts_reachable, other={"own": True})
    assert (both.status, both.reason) == (Status.SKIP, "TF_CONFIG names no other task")


@pytest.mark.parametrize("check", [port_errors, port_rate, port_state])
def test_machine_without_rdma_is_skipped_with_the_reason(check: Any) -> None:
    result = compute_check(check, network(), environment(), JobHosts())
    assert result.reason == "this machine has no RDMA device (InfiniBand, RoCE or EFA)"


def test_rate_is_compared_with_the_fastest_of_several_ports() -> None:
    result = ports(port_rate, [port(**SLOW)], [port()], [port(**SLOW)])
    assert [item.finding.subject for item in result.findings] == ["mlx5_0 port 1", "mlx5_2 port 1"]
    assert {item.finding.expected for item in result.findings} == {"400 Gbit/s, as on the other ports of such a card"}


def test_one_active_port_is_enough_for_several_machines() -> None:
    machine = network(device(0), device(1, port(**DOWN), board="other"))
    assert compute_check(port_state, machine, environment(), two_hosts()).findings == ()


def test_gpu_that_does_not_respond_has_no_nearest_device() -> None:
    place = pci_gpu(0)
    facts = gpus(2, gpu(0), lost_gpu(1)), PciDevices(devices=(place,)), environment()
    result = compute_check(gpu_affinity, network(device(0)), *facts)
    assert [item.subject for item in result.unjudged] == ["GPU 1"]
