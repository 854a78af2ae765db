from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from helpers.judging import compute_check
from kdoctor.model import Severity, Status
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


def test_a_lost_gpu_is_left_out() -> None:
    result = compute_check(ecc_errors, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_the_finding_says_what_to_do() -> None:
    finding = (
        compute_check(ecc_errors, gpus(1, gpu(0, ecc_uncorrected_volatile=2, ecc_uncorrected_aggregate=5)))
        .findings[0]
        .finding
    )
    assert finding.observed == "2 uncorrected memory errors since the driver was loaded, 5 over its life"
    assert finding.remedy.commands[2] == "sudo reboot"


def test_gpus_that_do_not_support_it_are_no_subject() -> None:
    errors = {"ecc_uncorrected_volatile": "NVML_ERROR_NOT_SUPPORTED"}
    result = compute_check(
        ecc_errors, gpus(2, *(gpu(index, ecc_uncorrected_volatile=None, errors=errors) for index in range(2)))
    )
    assert (result.status, result.reason) == (Status.SKIP, "NVIDIA H100 80GB HBM3 does not support it")


def test_nothing_is_counted_with_ecc_off() -> None:
    result = compute_check(ecc_errors, gpus(2, *(gpu(index, ecc_mode=False) for index in range(2))))
    assert (result.status, result.reason) == (Status.SKIP, "ECC is off, so that nothing is counted (gpu.ecc-mode)")


def test_a_checklist_may_allow_some() -> None:
    one = gpus(1, gpu(0, ecc_uncorrected_volatile=1))
    assert compute_check(ecc_errors, one, most=1).status is Status.PASS


def test_under_mig_the_counters_are_not_told_and_the_others_are_judged() -> None:
    split = gpu(1, mig_mode=True, ecc_uncorrected_volatile=None, errors={"ecc_uncorrected_volatile": "N/A"})
    assert compute_check(ecc_errors, gpus(2, gpu(0), split)).status is Status.PASS
