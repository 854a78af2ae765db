from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from helpers.saying import said
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.mig_mode import mig_mode


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"mig_mode": True}, Status.FAIL),
        ({"mig_mode": None, "errors": {"mig_mode": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"mig_mode": None, "errors": {"mig_mode": "NVML_ERROR_NOT_SUPPORTED"}}, Status.UNKNOWN),
    ],
)
def test_partitioned_gpu_fails(change: dict[str, Any], status: Status) -> None:
    result = compute_check(mig_mode, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(mig_mode, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(mig_mode, gpus(1, gpu(0, mig_mode=True))).findings[0].finding
    assert finding.remedy.commands == ("sudo nvidia-smi -mig 0",)


def test_unsupported_gpus_are_skipped() -> None:
    errors = {"mig_mode": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(mig_mode, gpus(2, *(gpu(index, mig_mode=None, errors=errors) for index in range(2))))
    assert result.status is Status.SKIP
    assert "NVIDIA H100 80GB HBM3" in (result.reason or "")


def test_state_of_each_gpu_is_stated() -> None:
    result = compute_check(mig_mode, gpus(2, gpu(0), gpu(1, mig_mode=True)))
    assert list(said(result).values()) == ["MIG is on", "MIG is off"]
