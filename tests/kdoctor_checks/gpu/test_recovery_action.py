from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.recovery_action import recovery_action


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"recovery_action": "reset"}, Status.FAIL),
        ({"recovery_action": "drain-p2p"}, Status.FAIL),
        ({"recovery_action": None, "errors": {"recovery_action": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"recovery_action": None, "errors": {"recovery_action": "NVML_ERROR_INVALID_ARGUMENT"}}, Status.UNKNOWN),
    ],
)
def test_requested_recovery_action_fails(change: dict[str, Any], status: Status) -> None:
    result = compute_check(recovery_action, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(recovery_action, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(recovery_action, gpus(1, gpu(0, recovery_action="reboot"))).findings[0].finding
    assert finding.observed.endswith("reboot")
    assert finding.remedy.commands[0] == "sudo reboot"


def test_old_driver_is_skipped() -> None:
    errors = {"recovery_action": "NVML_ERROR_FUNCTION_NOT_FOUND"}
    result = compute_check(
        recovery_action, gpus(2, *(gpu(index, recovery_action=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "580.105.08" in (result.reason or "")


def test_old_driver_may_not_know_field() -> None:
    errors = {"recovery_action": "NVML_ERROR_INVALID_ARGUMENT"}
    result = compute_check(
        recovery_action, gpus(2, *(gpu(index, recovery_action=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "580.105.08" in (result.reason or "")
