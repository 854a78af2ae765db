from __future__ import annotations

import pytest

from helpers.facts import gpus, log, logged, pci, pci_gpu
from kdoctor.check import Check
from kdoctor.facts import KernelLog, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.nvswitch_errors import nvswitch_errors
from kdoctor_checks.topology.nvswitch_warnings import nvswitch_warnings

FATAL = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
LESSER = "nvidia-nvswitch1: SXid (PCI:0000:c2:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"


@pytest.mark.parametrize("check", [nvswitch_errors, nvswitch_warnings], ids=lambda check: check.id)
def test_log_without_sxids_passes_and_unread_one_does_not(check: Check) -> None:
    assert compute_check(check, log()).status is Status.PASS
    assert compute_check(check, missing={KernelLog: "no"}).status is Status.SKIP


def test_fatal_error_fails_and_names_switch() -> None:
    result = compute_check(nvswitch_errors, logged(FATAL, LESSER))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert [item.finding.subject for item in result.findings] == ["NVSwitch at 0000:c1:00.0"]


def test_non_fatal_error_is_a_note() -> None:
    assert compute_check(nvswitch_errors, logged(LESSER)).status is Status.PASS
    result = compute_check(nvswitch_warnings, logged(FATAL, LESSER))
    assert (result.status, result.severity) == (Status.FAIL, Severity.INFO)
    assert [item.finding.subject for item in result.findings] == ["NVSwitch at 0000:c2:00.0"]
    assert compute_check(nvswitch_warnings, logged(FATAL)).status is Status.PASS


@pytest.mark.parametrize("check", [nvswitch_errors, nvswitch_warnings], ids=lambda check: check.id)
def test_machine_without_nvswitch_is_skipped(check: Check) -> None:
    alone = PciDevices(devices=(pci_gpu(0),))
    assert compute_check(check, log(), gpus(1), alone).status is Status.SKIP
    assert compute_check(check, log(), gpus(1), pci(1)).status is Status.PASS
