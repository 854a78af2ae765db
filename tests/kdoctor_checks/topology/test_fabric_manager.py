from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import NOT_SUPPORTED, gpu, gpus, host, kernel_settings, pci
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Host, Kernel, PciDevices
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.fabric_manager import fabric_manager

WITHOUT_STATE: dict[str, Any] = {"fabric_state": None, "fabric_status": None, "errors": {"fabric_state": NOT_SUPPORTED}}


def judged(*facts: FactGroup) -> Result:
    """Two A100, which do not report their registration, and an NVSwitch."""
    old = gpus(2, *(gpu(index, **WITHOUT_STATE) for index in range(2)))
    return compute_check(fabric_manager, old, pci(2), kernel_settings(), host(), *facts)


def test_running_daemon_passes() -> None:
    assert judged().status is Status.PASS


def test_missing_daemon_fails() -> None:
    result = judged(kernel_settings(daemons=("nvidia-persistenced",)))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert "1 NVSwitch" in result.findings[0].finding.observed


@pytest.mark.parametrize("container", ["docker", None])
def test_container_is_skipped(container: str | None) -> None:
    result = judged(kernel_settings(daemons=()), host(container=container))
    assert result.status is Status.SKIP


def test_gpus_with_fabric_state_are_skipped() -> None:
    assert judged(gpus(2), kernel_settings(daemons=())).status is Status.SKIP


def test_daemon_is_needed_if_one_gpu_does_not_report_its_registration() -> None:
    mixed = gpus(2, gpu(0), gpu(1, **WITHOUT_STATE))
    result = compute_check(fabric_manager, pci(2), mixed, kernel_settings(daemons=()), host())
    assert result.status is Status.FAIL


def test_no_switch_is_skipped() -> None:
    assert judged(PciDevices(devices=())).status is Status.SKIP


def test_unread_programs_are_unknown() -> None:
    assert judged(kernel_settings(daemons=None)).status is Status.UNKNOWN


@pytest.mark.parametrize("group", [PciDevices, Kernel, Host])
def test_missing_evidence_is_unknown(group: type[FactGroup]) -> None:
    result = compute_check(fabric_manager, gpus(2), pci(2), kernel_settings(), host(), missing={group: "hung"})
    assert result.status is Status.UNKNOWN
