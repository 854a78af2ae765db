"""The limits of the checks of links, and the numbers and names that they state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import (
    bus_id,
    geforce,
    gpu,
    gpus,
    host,
    kernel_settings,
    log,
    logged,
    lost_gpu,
    near,
    pair,
    pci,
    pci_gpu,
    way,
)
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import Gpus, KernelLogEvent, NumaNode, NvLink, PciDevices
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks._catalog import sxids
from kdoctor_checks.topology._sxids import classify, codes, summary
from kdoctor_checks.topology.acs import acs
from kdoctor_checks.topology.acs_settings import acs_settings
from kdoctor_checks.topology.fabric import fabric
from kdoctor_checks.topology.fabric_manager import fabric_manager
from kdoctor_checks.topology.iommu_faults import iommu_faults
from kdoctor_checks.topology.logged_pcie_errors import logged_pcie_errors
from kdoctor_checks.topology.numa import numa
from kdoctor_checks.topology.nvlink_direct import nvlink_direct
from kdoctor_checks.topology.nvswitch_errors import nvswitch_errors
from kdoctor_checks.topology.nvswitch_warnings import nvswitch_warnings
from kdoctor_checks.topology.p2p import p2p
from kdoctor_checks.topology.p2p_geforce import p2p_geforce
from kdoctor_checks.topology.p2p_trusted import p2p_trusted
from kdoctor_checks.topology.pairs import pairs
from kdoctor_checks.topology.pcie_errors import pcie_errors
from kdoctor_checks.topology.pcie_generation import pcie_generation
from kdoctor_checks.topology.pcie_path import pcie_path
from kdoctor_checks.topology.pcie_replays import pcie_replays
from kdoctor_checks.topology.pcie_width import pcie_width

FIRST, SECOND = gpu(0).subject, gpu(1).subject
REDIRECTS = 0x1D


def below_one_port(*indices: int) -> PciDevices:
    """GPUs below one port, which redirects their traffic."""
    shared = way(0, acs_control=REDIRECTS)
    return pci(len(indices), *(pci_gpu(index, path=shared) for index in indices))


LINKED = {"nvlinks": 18, "p2p_read": "OK"}
OVER_PCIE = {"level": "PIX", "nvlinks": 0, "p2p_read": "OK"}
UNREAD = {"level": "PIX", "nvlinks": 0, "p2p_read": None}
REFUSED = {"level": "PIX", "nvlinks": 0, "p2p_read": "GNS"}


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ((LINKED, LINKED, LINKED), Status.PASS),
        ((UNREAD, LINKED, LINKED), Status.UNKNOWN),
        ((LINKED, LINKED, UNREAD), Status.UNKNOWN),
        ((OVER_PCIE, LINKED, LINKED), Status.FAIL),
        ((LINKED, LINKED, OVER_PCIE), Status.FAIL),
        ((OVER_PCIE, UNREAD, LINKED), Status.FAIL),
        ((UNREAD, OVER_PCIE, LINKED), Status.FAIL),
        ((OVER_PCIE, REFUSED, REFUSED), Status.FAIL),
        ((REFUSED, REFUSED, OVER_PCIE), Status.FAIL),
        ((REFUSED, REFUSED, UNREAD), Status.UNKNOWN),
        ((UNREAD, REFUSED, REFUSED), Status.UNKNOWN),
        ((REFUSED, REFUSED, REFUSED), Status.PASS),
    ],
)
def test_port_matters_if_any_gpu_below_it_uses_pcie(states: tuple[dict[str, Any], ...], status: Status) -> None:
    ends = ((0, 1), (0, 2), (1, 2))
    found = gpus(3, pairs=tuple(pair(*two, **state) for two, state in zip(ends, states, strict=True)))
    result = compute_check(acs, below_one_port(0, 1, 2), found)
    assert result.status is status
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["PCI 0000:0d:00.0"])
    assert bool(result.evidence) is (status is Status.PASS)


def test_port_above_an_unknown_path_does_not_pass() -> None:
    result = compute_check(acs, pci(2, pci_gpu(0, path=None), pci_gpu(1)), gpus(2))
    assert (result.status, result.evidence) == (Status.SKIP, ())


@pytest.mark.parametrize("check", [acs, acs_settings, pcie_errors, pcie_path])
def test_machine_without_a_gpu_is_skipped_with_the_reason(check: Any) -> None:
    result = compute_check(check, pci(2), gpus(0))
    assert (result.status, result.reason) == (Status.SKIP, "the driver lists no GPU")
    nowhere = compute_check(check, PciDevices(devices=()), gpus(0))
    assert (nowhere.status, nowhere.reason) == (
        Status.SKIP, "no NVIDIA GPU on the PCI bus and none listed by the driver"
    )  # fmt: skip


@pytest.mark.parametrize("unread", [0, 1])
def test_unread_path_of_a_gpu_leaves_the_links_of_the_others(unread: int) -> None:
    devices = [pci_gpu(index, path=None if index == unread else way(index)) for index in range(2)]
    result = compute_check(pcie_path, pci(2, *devices), gpus(2))
    assert [item.subject for item in result.unjudged] == [f"GPU at {bus_id(unread)}"]
    assert len(result.evidence) == 1


def test_link_above_lost_gpus_only_is_explained_by_them() -> None:
    narrow = pci(2, pci_gpu(0), pci_gpu(1, path=way(1, link_width=8)))
    lost = gpu(1, errors={"handle": "GpuIsLost"})
    for devices, explained_by in (((gpu(0), lost), ("gpu.responding",)), ((gpu(0), gpu(1)), ())):
        (found,) = compute_check(pcie_path, narrow, gpus(2, *devices)).findings
        assert found.finding.explained_by == explained_by


def test_bus_without_ports_above_gpus_has_no_links() -> None:
    result = compute_check(pcie_path, PciDevices(devices=()), gpus(2))
    assert (result.status, result.reason) == (Status.SKIP, "no visible PCIe switch above the GPUs")
    above = compute_check(pcie_path, pci(1, pci_gpu(0, path=way(0)[:2])), gpus(1))
    assert [item.subject for item in above.evidence] == ["PCI 0000:0c:00.0 - 0000:0d:00.0"]


def test_links_above_two_switches_are_judged() -> None:
    second = tuple(replace(port, bus_id=port.bus_id.replace(":00.0", ":01.0")) for port in way(0)[1:])
    result = compute_check(pcie_path, pci(1, pci_gpu(0, path=(*way(0), *second))), gpus(1))
    assert [item.subject for item in result.evidence] == [
        "PCI 0000:0c:00.0 - 0000:0d:00.0", "PCI 0000:0e:00.0 - 0000:0d:01.0"
    ]  # fmt: skip


def test_fatal_sxid_is_not_reported_together_with_their_absence() -> None:
    for found in (sxid(None, "Fatal, Link 32"), sxid(None)):
        result = compute_check(nvswitch_errors, log(found), gpus(2), pci(2))
        assert (len(result.findings) + len(result.unjudged), result.evidence) == (1, ())


@pytest.mark.parametrize("check", [p2p_trusted, p2p_geforce])
def test_pairs_with_a_lost_card_are_unknown(check: Any) -> None:
    cards = gpus(3, geforce(0), geforce(1), lost_gpu(2), pairs=(pair(nvlinks=0, p2p_read="GNS", p2p_write="GNS"),))
    result = compute_check(check, cards)
    assert len(result.evidence) + len(result.findings) == 1
    assert [item.subject for item in result.unjudged] == ["GPU 0 - GPU 2", "GPU 1 - GPU 2"]


def test_only_gpus_with_a_narrow_link_are_inspected() -> None:
    result = widths(gpu(0, pcie_width=0), gpu(1, pcie_width=8), gpu(2))
    assert [item.subject for item in result.unjudged] == [FIRST]
    assert f"-s {bus_id(1)} " in result.findings[0].finding.remedy.look[0]


def test_harmless_redirection_has_a_command_for_its_ports_only() -> None:
    devices = pci(2, pci_gpu(0), pci_gpu(1, path=way(1, acs_control=REDIRECTS)))
    result = compute_check(acs_settings, devices, gpus(2))
    (found,) = result.findings
    assert found.finding.remedy.commands == ("sudo setpci -s 0000:1d:00.0 ECAP_ACS+0x6.w=0000",)
    assert found.finding.rollback.commands == ("sudo setpci -s 0000:1d:00.0 ECAP_ACS+0x6.w=001d",)
    assert len(result.evidence) == 5


def sxid(code: int | None, text: str = "Minor error") -> KernelLogEvent:
    return KernelLogEvent(kind="sxid", code=code, bus_id="0000:f0:00.0", text=text)


def test_sxid_without_a_code_is_unclassified_unless_the_line_says_fatal() -> None:
    assert classify(sxid(None)) == "unclassified"
    assert classify(sxid(None, "Non-fatal, Link 32")) == "unclassified"
    assert classify(sxid(None, "Fatal, Link 32")) == "fatal"
    assert summary([sxid(None)]).startswith(codes([sxid(None)]) + "; last line: ")


@pytest.mark.parametrize(
    ("change", "command"),
    [({}, f"-i {bus_id(1)}"), ({"bus_id": None}, "-i 1")],
)
def test_reset_of_an_unhealthy_gpu_names_it(change: dict[str, Any], command: str) -> None:
    odd = gpu(1, fabric_problems=("bandwidth: Degraded",), **change)
    (found,) = compute_check(fabric, gpus(2, gpu(0), odd)).findings
    assert found.finding.remedy.commands == (f"sudo nvidia-smi --gpu-reset {command}",)


def test_health_of_the_fabric_is_stated() -> None:
    assert said(compute_check(fabric, gpus(1)))[FIRST] == "fabric state completed, status success, healthy"
    silent = gpu(0, fabric_problems=None, errors={"fabric_problems": "NVML_ERROR_NOT_SUPPORTED"})
    assert said(compute_check(fabric, gpus(1, silent)))[FIRST] == "fabric state completed, status success"
    odd = gpus(3, gpu(0), gpu(1, fabric_state="not-supported"), gpu(2))
    assert said(compute_check(fabric, odd))[SECOND] == "fabric state not-supported, unlike 2 other GPUs"


@pytest.mark.parametrize(("length", "fits"), [(60, True), (61, False)])
def test_problem_of_the_fabric_is_in_the_headline_if_it_fits(length: int, fits: bool) -> None:  # noqa: FBT001 - a table
    problem = "x" * (length - len("fabric health: "))
    result = compute_check(fabric, gpus(1, gpu(0, fabric_problems=(problem,))))
    assert briefs(result) == [f"fabric health: {problem}" if fits else "fabric health: 1 problem"]


def test_only_a_registration_that_ended_is_explained_by_links() -> None:
    down = (NvLink(index=0, active=False),)
    (found,) = compute_check(fabric, gpus(1, gpu(0, fabric_problems=("route unhealthy: True",), nvlinks=down))).findings
    assert found.finding.explained_by == ("topology.nvlink",)
    (found,) = compute_check(fabric, gpus(1, gpu(0, fabric_problems=("route unhealthy: True",)))).findings
    assert found.finding.explained_by == ()


CORRECTED = "pcieport 0000:00:01.0: AER: Corrected error received: {}"
FATAL = "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: {}"


@pytest.mark.parametrize(
    ("lines", "brief"),
    [
        ([CORRECTED] * 5, "corrected PCIe errors"),
        ([CORRECTED] * 50, "corrected PCIe errors"),
        ([FATAL], "uncorrected PCIe errors"),
        ([FATAL, CORRECTED], "uncorrected PCIe errors"),
        ([FATAL, CORRECTED, CORRECTED], "uncorrected PCIe errors and corrected PCIe errors"),
    ],
)
def test_kinds_of_logged_errors_are_named(lines: list[str], brief: str) -> None:
    found = logged(*(line.format(bus_id(1)) for line in lines))
    result = compute_check(logged_pcie_errors, gpus(4), pci(4), found)
    assert briefs(result) == [brief]
    assert "at most 1 corrected" in result.findings[0].finding.expected


def test_errors_of_other_devices_do_not_hide_later_ones() -> None:
    lines = [CORRECTED.format("0000:99:00.0")] * 9 + [CORRECTED.format(bus_id(1))] * 2
    lines += [CORRECTED.format(bus_id(2))] + [CORRECTED.format(bus_id(3))] * 2
    result = compute_check(logged_pcie_errors, gpus(4), pci(4), logged(*lines))
    assert [item.finding.subject for item in result.findings] == [SECOND, gpu(3).subject]
    allowed = compute_check(logged_pcie_errors, gpus(4), pci(4), logged(*lines), most_corrected=2)
    assert allowed.findings == ()


def test_error_without_an_address_counts() -> None:
    event = KernelLogEvent(kind="pcie-error", text="AER: Uncorrected error")
    (found,) = compute_check(logged_pcie_errors, gpus(4), pci(4), log(event)).findings
    assert found.finding.subject == "a device without address in the log"


@pytest.mark.parametrize(
    ("ours", "stated"),
    [
        ((0,), f"1 of {len(near(0))} CPUs near it available, and memory of NUMA node 0"),
        (tuple(near(0)), f"{len(near(0))} of {len(near(0))} CPUs near it available, and memory of NUMA node 0"),
        (
            tuple(near(4)),
            f"none of its {len(near(0))} nearby CPUs is available (this process may use {len(near(4))} CPUs)",
        ),
    ],
)
def test_cpus_near_a_gpu_are_counted(ours: tuple[int, ...], stated: str) -> None:
    assert said(compute_check(numa, gpus(1), host(cpu_affinity=ours), pci(1)))[FIRST] == stated


def test_binding_is_removed_over_all_cpus_of_the_machine() -> None:
    def commands(**changes: Any) -> tuple[str, ...]:
        (found,) = compute_check(numa, gpus(1), host(cpu_affinity=near(4), **changes), pci(1)).findings
        return found.finding.remedy.commands

    assert commands(cpus=64) == ("taskset -pc 0-63 $$",)
    assert commands(cpus=None) == ()


def test_memory_of_another_node_is_named() -> None:
    def stated(*nodes: int) -> str:
        return said(compute_check(numa, gpus(1), host(memory_nodes=nodes), pci(1)))[FIRST]

    assert stated(1) == "near NUMA node 0, but this process may use memory of node 1 only"
    assert stated() == "near NUMA node 0, but this process may use memory of node none only"


@pytest.mark.parametrize(
    ("models", "status"),
    [(("4090", "4090"), Status.FAIL), (("4090", "3090"), Status.SKIP), (("3090", "4090"), Status.SKIP)],
)
def test_both_cards_of_a_pair_must_lack_peer_access(models: tuple[str, str], status: Status) -> None:
    cards = gpus(2, geforce(0, models[0]), geforce(1, models[1]), pairs=(pair(nvlinks=0),))
    assert compute_check(p2p_trusted, cards).status is status


@pytest.mark.parametrize(
    ("change", "stated", "brief"),
    [
        ({"aer_fatal": 1}, "1 fatal, 0 non-fatal, 0 corrected", "too many fatal PCIe errors"),
        (
            {"aer_nonfatal": 11, "aer_fatal": None},
            "? fatal, 11 non-fatal, 0 corrected",
            "too many non-fatal PCIe errors",
        ),
        (
            {"aer_nonfatal": 11, "aer_correctable": 1001},
            "0 fatal, 11 non-fatal, 1001 corrected",
            "too many non-fatal and corrected PCIe errors",
        ),
    ],
)
def test_counters_of_errors_are_stated(change: dict[str, Any], stated: str, brief: str) -> None:
    result = compute_check(pcie_errors, pci(1, pci_gpu(0, **change)), gpus(1))
    assert said(result)[f"PCI {bus_id(0)}"].startswith(stated)
    assert briefs(result)[0] == brief
    assert result.findings[0].finding.expected == "at most 0 fatal, 10 non-fatal, 1000 corrected"


def test_errors_are_not_judged_twice_where_the_driver_lists_no_gpu() -> None:
    errors = compute_check(
        pcie_errors, pci(2, pci_gpu(0, aer_fatal=1), pci_gpu(1, path=None)), gpus(0, state="driver-not-loaded")
    )
    assert [item.finding.subject for item in errors.findings] == [f"PCI {bus_id(0)}"]
    assert (errors.evidence, errors.unjudged) == ((), ())


def test_every_port_above_a_gpu_is_judged() -> None:
    result = compute_check(pcie_errors, pci(1), gpus(1))
    assert {item.subject for item in result.evidence} == {f"PCI {item.bus_id}" for item in (*way(0), *pci(1).gpus)}


@pytest.mark.parametrize(
    ("recorded", "stated"),
    [(("UnsupReq",), "none"), (("MalfTLP", "UnsupReq", "CmpltTO"), "MalfTLP, CmpltTO")],
)
def test_recorded_errors_that_lose_data_are_named(recorded: tuple[str, ...], stated: str) -> None:
    counters = dict.fromkeys(("aer_correctable", "aer_nonfatal", "aer_fatal"))
    device = pci_gpu(0, path=(), aer_status=recorded, **counters)
    text = said(compute_check(pcie_errors, pci(1, device), gpus(1)))[f"PCI {bus_id(0)}"]
    assert text == f"uncorrected PCIe errors recorded: {stated}"


def path(shared: int, **changes: Any) -> Result:
    above = way(0, **changes)
    return compute_check(pcie_path, pci(shared, *(pci_gpu(index, path=above) for index in range(shared))), gpus(shared))


@pytest.mark.parametrize(
    ("changes", "stated", "brief", "expected"),
    [
        ({"link_width": 8}, "x8 of x16, generation 5 of 5", "narrow", "x16, generation 5"),
        ({"link_speed": "16.0 GT/s PCIe"}, "x16 of x16, generation 4 of 5", "slow", "x16, generation 5"),
    ],
)
def test_link_above_gpus_is_stated_with_them(changes: dict[str, Any], stated: str, brief: str, expected: str) -> None:
    subject = "PCI 0000:0c:00.0 - 0000:0d:00.0"
    one, two = path(1, **changes), path(2, **changes)
    assert said(one)[subject] == f"{stated}, above the GPU at {bus_id(0)}"
    assert said(two)[subject] == f"{stated}, above the GPUs at {bus_id(0)}, {bus_id(1)}"
    assert briefs(one) == [f"the link above 1 GPU is {brief}"]
    assert briefs(two) == [f"the link above 2 GPUs is {brief}"]
    assert one.findings[0].finding.expected == expected


def test_share_of_the_width_is_enough_if_the_checklist_says_so() -> None:
    def judged(width: int) -> Status:
        above = pci(1, pci_gpu(0, path=way(0, link_width=width)))
        return compute_check(pcie_path, above, gpus(1), least_share=0.5).status

    assert (judged(8), judged(4)) == (Status.PASS, Status.FAIL)


def widths(*devices: Any, **others: Any) -> Result:
    return compute_check(pcie_width, gpus(len(devices), *devices, **others), pci(len(devices)))


@pytest.mark.parametrize(
    ("links", "value"), [((18, 18, 18), ""), ((18, 18, 0), "PCIe x16 gen 5"), ((0, 0, 0), "PCIe x16 gen 5")]
)
def test_width_is_shown_unless_all_pairs_have_nvlink(links: tuple[int, ...], value: str) -> None:
    ends = ((0, 1), (0, 2), (1, 2))
    pairs = tuple(pair(*two, nvlinks=count) for two, count in zip(ends, links, strict=True))
    assert set(briefs(widths(gpu(0), gpu(1), gpu(2), pairs=pairs))) == {value}
    assert briefs(widths(gpu(0), pairs=())) == ["PCIe x16 gen 5"]
    assert briefs(widths(gpu(0, pcie_generation=1), pairs=())) == ["PCIe x16"]


@pytest.mark.parametrize(
    ("change", "stated"),
    [
        ({}, "PCIe x16 of x16, generation 5 of 5 in P0"),
        ({"performance_state": None}, "PCIe x16 of x16, generation 5 of 5"),
        ({"pcie_generation": None, "pcie_generation_max": None}, "PCIe x16 of x16, generation ? of ? in P0"),
        ({"pcie_width": 0}, "NVML reports width x0 of x16"),
        ({"pcie_width_max": 0}, "NVML reports width x16 of x0"),
    ],
)
def test_width_is_stated(change: dict[str, Any], stated: str) -> None:
    assert said(widths(gpu(0, **change), pairs=()))[FIRST] == stated


def test_slot_unlike_those_of_most_gpus_is_stated() -> None:
    odd = {"pcie_width": 8, "pcie_width_max": 8}
    result = widths(gpu(0), gpu(1, **odd), gpu(2))
    assert briefs(result)[0] == "PCIe x8, most have x16"
    assert result.findings[0].finding.expected == "x16, as for most GPUs of this model"
    assert widths(gpu(0), gpu(1), gpu(2, **odd), gpu(3, **odd)).status is Status.PASS  # no majority


@pytest.mark.parametrize(
    ("change", "stated"),
    [
        ({}, "PCIe x16 of x16, generation 5 of 5"),
        ({"path": None}, "PCIe x16 of x16, generation 5 of 5 (the port above was not read)"),
        ({"link_speed": None, "link_speed_max": None, "path": None}, "PCIe x16 of x16, generation ? of ? (the port"),
        ({"path": way(0)[:1]}, "PCIe x16 of x16, generation 5 of 5"),
    ],
)
def test_link_without_the_driver_is_stated(change: dict[str, Any], stated: str) -> None:
    result = compute_check(pcie_width, pci(1, pci_gpu(0, **change)), missing={Gpus: "not collected"})
    assert said(result)[f"GPU at {bus_id(0)}"].startswith(stated)


def test_generation_is_stated_with_the_state_of_the_gpu() -> None:
    def judged(**change: Any) -> Result:
        return compute_check(pcie_generation, gpus(3, gpu(0), gpu(1), gpu(2, **change)), pci(3))

    slow = judged(pcie_generation=3)
    assert said(slow)[gpu(2).subject] == "PCIe generation 3 of 5 in P0, 0 % busy"
    assert slow.findings[0].finding.expected == "generation 5"
    assert briefs(slow)[0] == "PCIe generation 3 of 5"
    odd = judged(pcie_generation=3, pcie_generation_max=3, performance_state=None, utilization_gpu_percent=None)
    assert said(odd)[gpu(2).subject] == "PCIe generation 3 of 3"
    assert briefs(odd)[0] == "PCIe generation 3 of 3, most have 5"


def test_every_slow_gpu_is_in_the_command() -> None:
    several = gpus(3, gpu(0), gpu(1, pcie_generation=3), gpu(2, pcie_generation=3))
    for found in compute_check(pcie_generation, several, pci(3)).findings:
        assert found.finding.remedy.look[0] == "sudo lspci -vv -d 10de: | grep -E 'NVIDIA|LnkCap:|LnkSta:'"


def logs(check: Any, *lines: str, facts: Any = None) -> Result:
    return compute_check(check, logged("usb 1-1: new device", *lines), *(facts or (gpus(2), pci(2))))


UNKNOWN_LINE = "NVRM: an assertion failed somewhere"


@pytest.mark.parametrize("check", [iommu_faults, logged_pcie_errors])
def test_unknown_line_of_the_driver_is_no_error_of_the_bus(check: Any) -> None:
    assert logs(check, UNKNOWN_LINE).status is Status.PASS


@pytest.mark.parametrize("check", [nvswitch_errors, nvswitch_warnings])
def test_unknown_line_of_the_driver_may_be_of_a_switch(check: Any) -> None:
    assert logs(check, UNKNOWN_LINE).status is Status.UNKNOWN


def switch(number: int, code: int, text: str) -> str:
    return f"nvidia-nvswitch{number}: SXid (PCI:0000:c{number}:00.0): {code}, {text}"


FATAL_SXID, LESSER_SXID = "Fatal, Link 30 LTSSM Fault Up", "Non-fatal, Link 32 egress error"


def test_each_switch_with_a_fatal_error_is_named() -> None:
    lines = (switch(1, 12028, LESSER_SXID), switch(2, 20034, FATAL_SXID), switch(3, 12028, LESSER_SXID))
    assert [item.finding.subject for item in logs(nvswitch_errors, *lines).findings] == ["NVSwitch at 0000:c2:00.0"]
    assert [item.finding.subject for item in logs(nvswitch_warnings, *lines).findings] == [
        "NVSwitch at 0000:c1:00.0",
        "NVSwitch at 0000:c3:00.0",
    ]


def test_unknown_error_of_a_switch_is_unknown_in_both_checks() -> None:
    unknown = switch(1, 99999, "Non-fatal, an error")
    result = logs(nvswitch_errors, unknown)
    assert [item.subject for item in result.unjudged] == ["NVSwitch at 0000:c1:00.0"]
    lesser = logs(nvswitch_warnings, unknown)
    assert [item.explained_by for item in lesser.unjudged] == [("topology.nvswitch-errors",)]
    assert logs(nvswitch_warnings, unknown, switch(2, 12028, LESSER_SXID)).unjudged == ()


def test_ports_that_are_not_known_leave_all_errors_to_be_judged() -> None:
    lines = [CORRECTED.format("0000:99:00.0")] * 2
    some_unread = gpus(2), pci(2, pci_gpu(0), pci_gpu(1, path=None))
    assert len(logs(logged_pcie_errors, *lines, facts=some_unread).findings) == 1
    assert logs(logged_pcie_errors, *lines).findings == ()


@pytest.mark.parametrize(
    ("version", "commands"),
    [
        (
            "570.158.01",
            (
                "sudo apt-get install nvidia-fabricmanager-570",
                "sudo systemctl enable --now nvidia-fabricmanager",
            ),
        ),
        (None, ("sudo systemctl enable --now nvidia-fabricmanager",)),
    ],
)
def test_fabric_manager_of_the_drivers_branch_is_installed(version: str | None, commands: tuple[str, ...]) -> None:
    unread: dict[str, Any] = {"fabric_state": None, "errors": {"fabric_state": "NVML_ERROR_NOT_SUPPORTED"}}
    old = gpus(2, gpu(0, **unread), gpu(1, **unread), driver_version=version)
    result = compute_check(fabric_manager, old, pci(2), kernel_settings(daemons=()), host())
    (found,) = result.findings
    assert found.finding.remedy.commands == commands
    assert said(result) == {"nv-fabricmanager": "not running, on a machine with 1 NVSwitch"}
    running = compute_check(fabric_manager, old, pci(2), kernel_settings(), host())
    assert said(running) == {"nv-fabricmanager": "running (1 NVSwitch)"}


def far(number: int, *near_pairs: tuple[int, int]) -> tuple[str, ...]:
    """The commands of the fix on GPUs of which these pairs are near each other."""
    ends = [(one, two) for one in range(number) for two in range(one + 1, number)]
    found = tuple(pair(*two, level="PIX" if two in near_pairs else "SYS", nvlinks=0) for two in ends)
    return compute_check(pairs, gpus(number, pairs=found)).findings[0].finding.remedy.commands


ORDER = "export CUDA_DEVICE_ORDER=PCI_BUS_ID"


@pytest.mark.parametrize(
    ("number", "near_pairs", "commands"),
    [
        (2, (), ()),
        (3, ((0, 1),), (ORDER, "export CUDA_VISIBLE_DEVICES=0,1")),
        (4, ((0, 1), (1, 2), (0, 2)), (ORDER, "export CUDA_VISIBLE_DEVICES=0,1,2")),
        (4, ((0, 1), (1, 2), (2, 3)), (ORDER, "export CUDA_VISIBLE_DEVICES=0,1")),  # 0 and 2 are far
        (4, ((0, 3), (1, 2), (1, 3), (2, 3)), (ORDER, "export CUDA_VISIBLE_DEVICES=1,2,3")),
    ],
)
def test_largest_set_of_near_gpus_is_chosen(
    number: int, near_pairs: tuple[tuple[int, int], ...], commands: tuple[str, ...]
) -> None:
    assert far(number, *near_pairs) == commands


@pytest.mark.parametrize(
    ("statuses", "judged"),
    [(("CNS", "TNS"), False), (("NS", "NS"), False), (("CNS", "OK"), True), (("GNS", "GNS"), True)],
)
def test_missing_peer_access_across_sockets_is_judged_by_the_pairs(statuses: tuple[Any, Any], judged: bool) -> None:  # noqa: FBT001 - a table
    apart = pair(level="SYS", nvlinks=0, p2p_read=statuses[0], p2p_write=statuses[1])
    assert bool(compute_check(p2p, gpus(2, pairs=(apart,))).findings) is judged


def test_only_gpu_of_several_that_were_counted_is_not_alone() -> None:
    assert compute_check(p2p, gpus(1, pairs=())).reason == "only one GPU"
    assert compute_check(p2p, gpus(1, count=2, pairs=())).reason != "only one GPU"


@pytest.mark.parametrize(
    ("problems", "name", "status"),
    [
        ((), "NVIDIA H100 80GB HBM3", Status.UNKNOWN),  # its equal reports it
        ((), "NVIDIA H200", Status.PASS),  # another model does
        (None, "NVIDIA H100 80GB HBM3", Status.PASS),  # no GPU does
    ],
)
def test_health_is_needed_where_an_equal_gpu_reports_it(problems: Any, name: str, status: Status) -> None:
    silent = {"fabric_problems": None, "errors": {"fabric_problems": "NVML_ERROR_NOT_SUPPORTED"}}
    devices = gpu(0, **silent), gpu(1, name=name, fabric_problems=problems), gpu(2, **silent)
    assert compute_check(fabric, gpus(3, *devices)).status is status


@pytest.mark.parametrize(("count", "status"), [(0, Status.PASS), (1, Status.FAIL)])
def test_replays_are_counted_from_the_limit(count: int, status: Status) -> None:
    result = compute_check(pcie_replays, gpus(1, gpu(0, pcie_replay_counter=count)), most=0)
    assert result.status is status
    assert said(result) == {FIRST: f"{count} PCIe replay{'' if count == 1 else 's'}"}


def test_driver_that_lists_no_gpu_skips_the_paths() -> None:
    assert compute_check(pcie_path, pci(1), gpus(0)).reason == "the driver lists no GPU"


def test_link_without_a_width_in_use_is_unknown_next_to_others() -> None:
    devices = gpu(0), gpu(1, pcie_width=0), gpu(2, pcie_width=0)
    result = widths(*devices)
    assert [item.subject for item in result.unjudged] == [SECOND, gpu(2).subject]
    assert result.findings == ()


def test_meaning_and_recovery_of_an_sxid_are_stated() -> None:

    known = next(row for row in sxids().values() if row.recovery)
    stated = summary([sxid(known.code)])
    assert f"; recovery: {known.recovery}; last line: " in stated
    assert stated.startswith(f"SXid {known.code} ({known.meaning})")
    assert classify(sxid(10003)) == "fatal"  # "always fatal" in the guide
    assert classify(sxid(12028)) == "lesser"


@pytest.mark.parametrize(("number", "more"), [(1, ""), (2, " and 1 more"), (3, " and 2 more")])
def test_further_problems_of_the_fabric_are_counted(number: int, more: str) -> None:
    result = compute_check(fabric, gpus(1, gpu(0, fabric_problems=("route",) * number)))
    assert briefs(result) == [f"fabric health: route{more}"]


def test_generation_is_shown_if_all_gpus_have_their_highest() -> None:
    assert set(briefs(widths(gpu(0), gpu(1, pcie_generation=1), pairs=()))) == {"PCIe x16"}


def test_idle_gpus_are_skipped_only_if_all_are_idle() -> None:
    idle: dict[str, Any] = {"pcie_generation": 1, "performance_state": 8, "utilization_gpu_percent": 0}
    assert compute_check(pcie_generation, gpus(2, gpu(0, **idle), gpu(1, **idle)), pci(2)).status is Status.SKIP
    assert compute_check(pcie_generation, gpus(2, gpu(0), gpu(1, **idle)), pci(2)).status is Status.PASS


def test_node_without_cpus_is_no_node_of_the_host() -> None:
    nodes = (*(host().numa_nodes or ()), NumaNode(index=9, cpus=()))
    assert compute_check(numa, gpus(1), host(numa_nodes=nodes), pci(1)).status is Status.PASS
    only = (NumaNode(index=0, cpus=near(0)),)
    assert compute_check(numa, gpus(1), host(numa_nodes=only), pci(1)).reason == "only one NUMA node"


def test_links_that_lead_to_switches_are_named() -> None:
    switched = compute_check(nvlink_direct, gpus(2), pci(2))
    assert (switched.reason or "").startswith("all NVLinks lead to NVSwitches")
    down = (NvLink(index=0, active=False),)
    mixed = compute_check(nvlink_direct, gpus(2, gpu(0), gpu(1, nvlinks=down)), pci(2))
    assert (mixed.reason or "").startswith("all NVLinks lead to NVSwitches")
