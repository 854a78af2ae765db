from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.repair_pending import repair_pending


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"channel_repair_pending": True}, Status.FAIL),
        ({"tpc_repair_pending": True}, Status.FAIL),
        ({"tpc_repair_pending": None, "errors": {"tpc_repair_pending": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_pending_repair_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(repair_pending, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_fix_resets_the_gpu_and_recovery_action_explains_it() -> None:
    device = gpu(0, channel_repair_pending=True, recovery_action="reset")
    finding = compute_check(repair_pending, gpus(1, device)).findings[0].finding
    assert finding.remedy.commands == ("sudo nvidia-smi --gpu-reset -i 0000:10:00.0",)
    assert finding.explained_by == ("gpu.recovery-action",)


def test_older_driver_is_skipped() -> None:
    errors = dict.fromkeys(("channel_repair_pending", "tpc_repair_pending"), "NVML_ERROR_FUNCTION_NOT_FOUND")
    device = gpu(0, channel_repair_pending=None, tpc_repair_pending=None, errors=errors)
    assert compute_check(repair_pending, gpus(1, device)).status is Status.SKIP


def test_lost_gpu_is_unknown() -> None:
    assert compute_check(repair_pending, gpus(2, gpu(0), lost_gpu(1))).status is Status.UNKNOWN
