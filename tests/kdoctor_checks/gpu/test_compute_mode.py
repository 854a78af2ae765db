from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.compute_mode import compute_mode


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"compute_mode": "exclusive-process"}, Status.PASS),
        ({"compute_mode": "prohibited"}, Status.FAIL),
        ({"compute_mode": None, "errors": {"compute_mode": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_prohibited_fails_and_exclusive_passes(change: dict[str, Any], status: Status) -> None:
    result = compute_check(compute_mode, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(compute_mode, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(compute_mode, gpus(1, gpu(0, compute_mode="prohibited"))).findings[0].finding
    assert "prohibited" in finding.observed
    assert finding.remedy.commands[0] == "sudo nvidia-smi --compute-mode=DEFAULT"
