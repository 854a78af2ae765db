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
