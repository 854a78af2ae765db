from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.ecc_errors import ecc_errors


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"ecc_uncorrected_volatile": 1}, Status.FAIL),
        ({"ecc_corrected_volatile": 7, "ecc_uncorrected_aggregate": 9}, Status.PASS),
        (
            {"ecc_uncorrected_volatile": None, "errors": {"ecc_uncorrected_volatile": "NVML_ERROR_UNKNOWN"}},
            Status.UNKNOWN,
        ),
    ],
)
def test_uncorrected_errors_since_loading_fail(change: dict[str, Any], status: Status) -> None:
    result = compute_check(ecc_errors, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(ecc_errors, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = (
        compute_check(ecc_errors, gpus(1, gpu(0, ecc_uncorrected_volatile=2, ecc_uncorrected_aggregate=5)))
        .findings[0]
        .finding
    )
    assert finding.observed.startswith("2 uncorrected memory errors")
    assert "5 over" in finding.observed
    assert finding.remedy.commands == ("sudo reboot",)


def test_unsupported_gpus_are_skipped() -> None:
    errors = {"ecc_uncorrected_volatile": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(
        ecc_errors, gpus(2, *(gpu(index, ecc_uncorrected_volatile=None, errors=errors) for index in range(2)))
    )
    assert result.status is Status.SKIP
    assert "NVIDIA H100 80GB HBM3" in (result.reason or "")


def test_ecc_off_is_skipped() -> None:
    result = compute_check(ecc_errors, gpus(2, *(gpu(index, ecc_mode=False) for index in range(2))))
    assert result.status is Status.SKIP
    assert "gpu.ecc-mode" in (result.reason or "")


def test_checklist_can_allow_errors() -> None:
    one = gpus(1, gpu(0, ecc_uncorrected_volatile=1))
    assert compute_check(ecc_errors, one, most=1).status is Status.PASS


def test_gpu_under_mig_is_ignored_and_others_judged() -> None:
    split = gpu(1, mig_mode=True, ecc_uncorrected_volatile=None, errors={"ecc_uncorrected_volatile": "N/A"})
    assert compute_check(ecc_errors, gpus(2, gpu(0), split)).status is Status.PASS
