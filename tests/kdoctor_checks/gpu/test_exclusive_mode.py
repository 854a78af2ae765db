from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.exclusive_mode import exclusive_mode


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"compute_mode": "exclusive-process"}, Status.FAIL),
        ({"compute_mode": "exclusive-thread"}, Status.FAIL),
        ({"compute_mode": None, "errors": {"compute_mode": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_exclusive_modes_warn(change: dict[str, Any], status: Status) -> None:
    result = compute_check(exclusive_mode, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(exclusive_mode, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(exclusive_mode, gpus(1, gpu(0, compute_mode="exclusive-process"))).findings[0].finding
    assert "exclusive-process" in finding.observed
    assert finding.remedy.commands[0] == "sudo nvidia-smi --compute-mode=DEFAULT"


def test_rollback_restores_recorded_mode() -> None:
    finding = compute_check(exclusive_mode, gpus(1, gpu(0, compute_mode="exclusive-process"))).findings[0].finding
    assert finding.rollback.commands == ("sudo nvidia-smi -i 0000:10:00.0 --compute-mode=EXCLUSIVE_PROCESS",)
