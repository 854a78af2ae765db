from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.row_remapping_pending import row_remapping_pending


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"remapped_rows_pending": True}, Status.FAIL),
        ({"remapped_rows_uncorrectable": 4}, Status.PASS),
        ({"remapped_rows_pending": None, "errors": {"remapped_rows_pending": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_pending_row_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(row_remapping_pending, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(row_remapping_pending, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = (
        compute_check(row_remapping_pending, gpus(1, gpu(0, remapped_rows_pending=True, remapped_rows_uncorrectable=4)))
        .findings[0]
        .finding
    )
    assert "4 uncorrectable, 0 correctable" in finding.observed
    assert finding.remedy.commands[0] == "sudo nvidia-smi --gpu-reset -i 0000:10:00.0"


def test_unsupported_gpus_are_skipped() -> None:
    errors = {"remapped_rows_pending": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(
        row_remapping_pending, gpus(2, *(gpu(index, remapped_rows_pending=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "NVIDIA H100 80GB HBM3" in (result.reason or "")


@pytest.mark.parametrize(
    ("state", "explained_by"),
    [
        ({}, ()),
        ({"ecc_uncorrected_volatile": 1}, ("gpu.ecc-errors",)),
        ({"remapped_rows_failure": True}, ("gpu.row-remapping",)),
        ({"recovery_action": "reset"}, ("gpu.recovery-action",)),
    ],
)
def test_pending_row_is_explained_by_other_counters(state: dict[str, Any], explained_by: tuple[str, ...]) -> None:
    (found,) = compute_check(row_remapping_pending, gpus(1, gpu(0, remapped_rows_pending=True, **state))).findings
    assert found.finding.explained_by == explained_by
