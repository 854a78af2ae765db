from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.unrepairable_memory import unrepairable_memory


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"unrepairable_memory": True}, Status.FAIL),
        ({"unrepairable_memory": None, "errors": {"unrepairable_memory": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_unrepairable_memory_fails(change: dict[str, Any], status: Status) -> None:
    result = compute_check(unrepairable_memory, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.ERROR)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_older_driver_is_skipped() -> None:
    errors = {"unrepairable_memory": "not reported by this driver"}
    result = compute_check(unrepairable_memory, gpus(1, gpu(0, unrepairable_memory=None, errors=errors)))
    assert result.status is Status.SKIP


def test_lost_gpu_is_unknown() -> None:
    assert compute_check(unrepairable_memory, gpus(2, gpu(0), lost_gpu(1))).status is Status.UNKNOWN
