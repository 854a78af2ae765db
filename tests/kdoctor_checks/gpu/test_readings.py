from __future__ import annotations

import pytest

from helpers.facts import NOT_SUPPORTED, geforce, gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.readings import readings


def test_unsupported_readings_pass() -> None:
    result = compute_check(readings, gpus(2, geforce(0), geforce(1)))
    assert (result.status, result.severity) == (Status.PASS, Severity.WARNING)


def test_unknown_error_is_unknown() -> None:
    """Recorded: "Addressing Mode: Unknown Error" on eight RTX 4090."""
    broken = geforce(1, addressing_mode=None, errors={"addressing_mode": "Unknown Error", "mig_mode": NOT_SUPPORTED})
    result = compute_check(readings, gpus(2, geforce(0), broken))
    assert result.status is Status.UNKNOWN
    assert (result.reason or "").endswith("addressing mode (Unknown Error)")


def test_gpus_after_an_unread_one_are_judged() -> None:
    found = gpus(4, gpu(0, name=None, errors={}), gpu(1, errors={"inforom": "infoROM is corrupted"}), gpu(2), gpu(3))
    result = compute_check(readings, found)
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 0"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 2", "GPU 3"]
    assert [item.finding.subject[:5] for item in result.findings] == ["GPU 1"]


def test_missing_call_means_old_driver() -> None:
    old = {"sram_threshold_exceeded": "NVML_ERROR_FUNCTION_NOT_FOUND", "recovery_action": "NVML_ERROR_INVALID_ARGUMENT"}
    result = compute_check(readings, gpus(1, gpu(0, errors=old)))
    assert "too old" in (result.reason or "")
    assert (result.reason or "").endswith("SRAM threshold exceeded, recovery action")


def test_many_failed_readings_are_counted() -> None:
    many = {f"field_{number}": "Unknown Error" for number in range(7)}
    result = compute_check(readings, gpus(1, gpu(0, errors=many)))
    assert (result.reason or "").endswith("field 3 (Unknown Error) and 3 more")


@pytest.mark.parametrize("error", ["infoROM is corrupted", "NVML_ERROR_CORRUPTED_INFOROM", "CorruptedInforom"])
def test_corrupted_inforom_fails(error: str) -> None:
    result = compute_check(readings, gpus(2, gpu(0), gpu(1, errors={"inforom": error})))
    assert result.status is Status.FAIL
    assert [item.finding.subject for item in result.findings] == [gpu(1).subject]


def test_line_that_was_not_understood_is_unknown() -> None:
    result = compute_check(readings, gpus(1, not_understood=("q.txt: Frobnication: Failed",)))
    assert result.status is Status.UNKNOWN
    (item,) = result.unjudged
    assert "Frobnication: Failed" in item.reason
