from __future__ import annotations

from helpers.facts import gpu, gpus, pci, pci_gpu
from kdoctor.facts import PciDevices
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.acs_settings import acs_settings


def test_acs_off_passes() -> None:
    result = compute_check(acs_settings, pci(2), gpus(2))
    assert result.status is Status.PASS
    assert "0x0000" in result.evidence[0].observed


def test_unread_path_is_unknown() -> None:
    result = compute_check(acs_settings, pci(2, pci_gpu(0), pci_gpu(1, path=None)), gpus(2))
    assert (result.reason or "").startswith("GPU at 0000:20:00.0: ")
    assert compute_check(acs_settings, gpus(2), missing={PciDevices: "hung"}).status is Status.UNKNOWN


def test_virtual_machine_single_gpu_and_no_bridge_are_skipped() -> None:
    virtual = gpus(2, *(gpu(index, virtualization_mode="passthrough") for index in range(2)))
    assert compute_check(acs_settings, pci(2), virtual).status is Status.SKIP
    assert compute_check(acs_settings, pci(1), gpus(1)).status is Status.SKIP
    at_root = pci(2, *(pci_gpu(index, path=()) for index in range(2)))
    assert compute_check(acs_settings, at_root, gpus(2)).status is Status.SKIP
