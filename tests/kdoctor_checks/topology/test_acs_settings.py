from __future__ import annotations

from helpers.facts import gpu, gpus, pci, pci_gpu
from helpers.judging import compute_check
from kdoctor.facts import PciDevices
from kdoctor.model import Status
from kdoctor_checks.topology.acs_settings import acs_settings


def test_settings_that_were_read_and_are_off_pass() -> None:
    result = compute_check(acs_settings, pci(2), gpus(2))
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "ACS does not redirect peer traffic (control 0x0000)"


def test_an_unread_way_is_unknown() -> None:
    result = compute_check(acs_settings, pci(2, pci_gpu(0), pci_gpu(1, path=None)), gpus(2))
    assert result.reason == "GPU at 0000:20:00.0: the way to its root port was not read"
    assert compute_check(acs_settings, gpus(2), missing={PciDevices: "hung"}).status is Status.UNKNOWN


def test_virtual_machines_lone_gpus_and_gpus_at_the_root_are_no_subject() -> None:
    virtual = gpus(2, *(gpu(index, virtualization_mode="passthrough") for index in range(2)))
    assert compute_check(acs_settings, pci(2), virtual).status is Status.SKIP
    assert compute_check(acs_settings, pci(1), gpus(1)).status is Status.SKIP
    at_root = pci(2, *(pci_gpu(index, path=()) for index in range(2)))
    assert compute_check(acs_settings, at_root, gpus(2)).status is Status.SKIP
