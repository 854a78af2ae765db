from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.ecc_mode import ecc_mode


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"ecc_mode": False, "ecc_mode_pending": False}, Status.FAIL),
        ({"ecc_mode_pending": False}, Status.FAIL),
        ({"ecc_mode": False}, Status.FAIL),
        ({"ecc_mode": None, "errors": {"ecc_mode": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"ecc_mode_pending": None, "errors": {"ecc_mode_pending": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_ecc_off_or_pending_off_is_a_note(change: dict[str, Any], status: Status) -> None:
    result = compute_check(ecc_mode, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.INFO)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(ecc_mode, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(ecc_mode, gpus(1, gpu(0, ecc_mode_pending=False))).findings[0].finding
    assert re.search(r"\bon\b.*\boff after", finding.observed)
    assert finding.remedy.commands[0] == "sudo nvidia-smi -e 1"


def test_unsupported_gpus_are_skipped() -> None:
    errors = {"ecc_mode": "NVML_ERROR_NOT_SUPPORTED", "ecc_mode_pending": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(
        ecc_mode, gpus(2, *(gpu(index, ecc_mode=None, ecc_mode_pending=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "NVIDIA H100 80GB HBM3" in (result.reason or "")
