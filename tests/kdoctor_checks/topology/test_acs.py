from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, pair, pci, pci_gpu, way
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, PciBridge, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.acs import acs, turn_off
from kdoctor_checks.topology.acs_settings import acs_settings

REDIRECTS = 0x1D


def over_pcie(**changes: Any) -> Gpus:
    """Two GPUs that reach each other over PCIe."""
    return gpus(2, pairs=(pair(**{"level": "PIX", "nvlinks": 0, **changes}),))


def redirecting() -> PciDevices:
    return pci(2, pci_gpu(0), pci_gpu(1, path=way(1, acs_control=REDIRECTS)))


def judged(*facts: FactGroup) -> Result:
    return compute_check(acs, pci(2), over_pcie(), *facts)


def test_ports_without_redirection_pass() -> None:
    result = judged()
    assert (result.status, result.severity) == (Status.PASS, Severity.ERROR)
    assert len(result.evidence) == 6


def test_redirecting_switch_fails_with_rollback() -> None:
    result = judged(redirecting())
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert (finding.subject, finding.observed) == (
        "PCI 0000:1d:00.0",
        "ACS redirects peer traffic (control 0x001d)",
    )
    assert finding.remedy.commands[0] == "sudo setpci -s 0000:1d:00.0 ECAP_ACS+0x6.w=0000"
    assert finding.rollback.commands == ("sudo setpci -s 0000:1d:00.0 ECAP_ACS+0x6.w=001d",)


@pytest.mark.parametrize(
    ("control", "status"),
    [(0x01, Status.PASS), (0x04, Status.FAIL), (0x08, Status.FAIL), (0x10, Status.FAIL), (0x00, Status.PASS)],
)
def test_source_validation_alone_passes(control: int, status: Status) -> None:
    assert judged(pci(2, pci_gpu(0), pci_gpu(1, path=way(1, acs_control=control)))).status is status


def test_nvlink_pair_passes() -> None:
    assert judged(redirecting(), gpus(2)).status is Status.PASS


def test_no_peer_access_passes() -> None:
    assert judged(redirecting(), over_pcie(p2p_read="GNS")).status is Status.PASS


def test_redirection_is_unknown_without_peer_status() -> None:
    assert judged(redirecting(), over_pcie(p2p_read=None)).status is Status.UNKNOWN
    assert judged(redirecting(), over_pcie(nvlinks=None)).status is Status.UNKNOWN
    assert compute_check(acs, redirecting(), missing={Gpus: "lspci alone"}).status is Status.UNKNOWN
    assert compute_check(acs, pci(2), missing={Gpus: "lspci alone"}).status is Status.PASS


def test_ports_above_nvswitch_are_ignored() -> None:
    """Recorded: on an 8 x H100 machine ACS is on above the NVSwitches and off on all paths to GPUs."""
    switch = pci(2).switches[0]
    above = PciDevices(devices=(*pci(2).gpus, type(switch)(**{**vars(switch), "path": way(9, acs_control=REDIRECTS)})))
    assert judged(above).status is Status.PASS


def test_virtual_machine_is_skipped() -> None:
    for mode in ("passthrough", "vgpu", "host-vgpu"):
        found = gpus(2, *(gpu(index, virtualization_mode=mode) for index in range(2)))
        assert judged(redirecting(), found).status is Status.SKIP


def test_single_gpu_is_skipped() -> None:
    assert judged(pci(1, pci_gpu(0, path=way(0, acs_control=REDIRECTS)))).status is Status.SKIP


def test_unreadable_acs_is_skipped_and_unknown_in_acs_settings() -> None:
    unread = pci(2, pci_gpu(0), pci_gpu(1, path=way(1, acs_control=None)))
    assert judged(unread).status is Status.SKIP
    result = compute_check(acs_settings, unread, over_pcie())
    assert result.status is Status.UNKNOWN
    assert (result.reason or "").startswith("PCI 0000:1d:00.0: ")


def test_harmless_redirection_is_a_note_in_acs_settings() -> None:
    result = compute_check(acs_settings, redirecting(), gpus(2))
    assert (result.status, result.severity) == (Status.FAIL, Severity.INFO)
    harmful = compute_check(acs_settings, redirecting(), over_pcie())
    assert not harmful.findings


def test_one_command_turns_acs_off_for_all_ports() -> None:
    ports = [PciBridge(bus_id=f"0000:{number:02x}:00.0", device_id="c030") for number in (1, 2)]
    remedy = turn_off(ports, "Turn ACS off.")
    assert remedy.commands == (
        "for port in 0000:01:00.0 0000:02:00.0; do sudo setpci -s $port ECAP_ACS+0x6.w=0000; done",
    )


def test_gpus_without_a_visible_port_above_them_are_skipped() -> None:
    bare = pci(2, pci_gpu(0, path=()), pci_gpu(1, path=()))
    assert judged(bare).status is Status.SKIP
