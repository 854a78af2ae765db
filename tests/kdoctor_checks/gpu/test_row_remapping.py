from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import geforces, gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.row_remapping import row_remapping


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"remapped_rows_failure": True}, Status.FAIL),
        ({"remapped_rows_uncorrectable": 4, "remapped_rows_pending": True}, Status.PASS),
        ({"remapped_rows_failure": None, "errors": {"remapped_rows_failure": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_remapping_failure_fails_and_remapped_rows_pass(change: dict[str, Any], status: Status) -> None:
    result = compute_check(row_remapping, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(row_remapping, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = (
        compute_check(row_remapping, gpus(1, gpu(0, remapped_rows_failure=True, remapped_rows_uncorrectable=8)))
        .findings[0]
        .finding
    )
    assert "8 rows" in finding.observed
    assert finding.remedy.look == ("nvidia-smi -q -d ROW_REMAPPER",)


def test_unsupported_gpus_are_skipped() -> None:
    errors = {"remapped_rows_failure": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(
        row_remapping, gpus(2, *(gpu(index, remapped_rows_failure=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "NVIDIA H100 80GB HBM3" in (result.reason or "")


def test_gaming_card_without_remapping_passes() -> None:
    """Recorded: an RTX 4090 answers with zeros instead of "not supported"."""
    assert compute_check(row_remapping, geforces(2)).status is Status.PASS
