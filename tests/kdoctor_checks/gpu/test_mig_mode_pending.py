from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.mig_mode_pending import mig_mode_pending


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"mig_mode_pending": True}, Status.FAIL),
        ({"mig_mode": True, "mig_mode_pending": True}, Status.PASS),
        ({"mig_mode_pending": None, "errors": {"mig_mode_pending": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_pending_change_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(mig_mode_pending, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(mig_mode_pending, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(mig_mode_pending, gpus(1, gpu(0, mig_mode_pending=True))).findings[0].finding
    assert re.search(r"\boff\b.*\bon after", finding.observed)
    assert finding.remedy.commands == ("sudo nvidia-smi -mig 0",)
