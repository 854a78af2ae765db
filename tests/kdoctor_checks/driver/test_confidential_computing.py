from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.confidential_computing import confidential_computing

ON: dict[str, Any] = {"conf_compute": True, "conf_compute_multi_gpu": "protected-pcie", "conf_compute_ready": True}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        (ON, Status.PASS),
        ({**ON, "conf_compute_ready": False}, Status.FAIL),
        ({**ON, "conf_compute_multi_gpu": "none"}, Status.FAIL),
        ({**ON, "conf_compute_ready": None}, Status.UNKNOWN),
        ({**ON, "conf_compute_multi_gpu": None}, Status.UNKNOWN),
        ({"conf_compute": None, "errors": {"conf_compute": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"conf_compute": None, "errors": {"conf_compute": "NVML_ERROR_NOT_SUPPORTED"}}, Status.SKIP),
        ({"conf_compute": None, "errors": {"conf_compute": "NVML_ERROR_FUNCTION_NOT_FOUND"}}, Status.SKIP),
    ],
)
def test_ready_state_and_multi_gpu_mode_are_judged(change: dict[str, Any], status: Status) -> None:
    result = compute_check(confidential_computing, gpus(2, **change))
    assert (result.status, result.severity) == (status, Severity.ERROR)


def test_single_gpu_needs_no_multi_gpu_mode() -> None:
    assert (
        compute_check(confidential_computing, gpus(1, **{**ON, "conf_compute_multi_gpu": "none"})).status is Status.PASS
    )


def test_each_part_of_the_state_is_evidence() -> None:
    result = compute_check(confidential_computing, gpus(2, **ON))
    assert [item.observed for item in result.evidence] == [
        "on, and the GPUs are ready", "on, multi-GPU mode protected-pcie"
    ]  # fmt: skip


@pytest.mark.parametrize(("errors", "why"), [({}, "no reason given"), ({"conf_compute": "Unknown"}, "Unknown")])
def test_state_that_was_not_read_has_its_reason(errors: dict[str, str], why: str) -> None:
    (unjudged,) = compute_check(confidential_computing, gpus(2, conf_compute=None, errors=errors)).unjudged
    assert unjudged.reason == f"its state was not read ({why})"


def test_gpus_that_are_not_ready_are_set_ready() -> None:
    (found,) = compute_check(confidential_computing, gpus(2, **{**ON, "conf_compute_ready": False})).findings
    assert found.finding.remedy.commands == ("sudo nvidia-smi conf-compute -srs 1",)
