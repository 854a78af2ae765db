from __future__ import annotations

import pytest

from helpers.facts import gpus, log, logged, pci
from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.iommu_faults import iommu_faults

INTEL = (
    "[1478401.486] DMAR: [DMA Write] Request device [{}] fault addr cd139000 [fault reason 05] PTE Write access is not"
    " set"
)
AMD = "[ 99.1] AMD-Vi: Event logged [IO_PAGE_FAULT device={} domain=0x0013 address=0xc0 flags=0x0020]"


def test_log_without_faults_passes() -> None:
    assert compute_check(iommu_faults, gpus(2), pci(2), log()).status is Status.PASS


@pytest.mark.parametrize("line", [INTEL, AMD])
def test_blocked_transfer_fails_and_names_gpu(line: str) -> None:
    result = compute_check(iommu_faults, gpus(2), pci(2), logged(line.format("20:00.0"), line.format("20:00.0")))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU 1 (0000:20:00.0)"
    assert "2 transfers" in finding.observed


def test_blocked_transfers_are_counted_with_the_last_one() -> None:
    lines = [INTEL.format("10:00.0").replace("cd139000", address) for address in ("a000", "b000", "c000")]
    (found,) = compute_check(iommu_faults, gpus(2), pci(2), logged(*lines)).findings
    assert found.finding.observed.startswith("the IOMMU blocked 3 transfers; last line: ")
    assert "addr c000" in found.finding.observed


def test_faults_of_other_devices_pass() -> None:
    assert compute_check(iommu_faults, gpus(2), pci(2), logged(INTEL.format("02:00.0"))).status is Status.PASS


def test_fault_is_unknown_without_list_of_devices() -> None:
    missing = {Gpus: "a log alone", PciDevices: "a log alone"}
    result = compute_check(iommu_faults, logged(INTEL.format("02:00.0")), missing=missing)
    assert result.status is Status.UNKNOWN


def test_unread_log_is_skipped() -> None:
    assert compute_check(iommu_faults, gpus(2), pci(2), missing={KernelLog: "no"}).status is Status.SKIP


def test_unknown_devices_of_faults_are_named() -> None:
    events = [KernelLogEvent(kind="iommu-fault", bus_id=address, text="no") for address in (None, "0000:99:00.0")]
    result = compute_check(iommu_faults, log(*events), gpus(2), missing={PciDevices: "not read"})
    assert result.status is Status.UNKNOWN
    assert "of 0000:99:00.0, a device without address, which" in (result.reason or "")
