from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpus, lost_gpu, v100
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.retired_pages_pending import retired_pages_pending


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"retired_pages_pending": True}, Status.FAIL),
        ({"retired_pages_double_bit": 3}, Status.PASS),
        ({"retired_pages_pending": None, "errors": {"retired_pages_pending": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_pending_page_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(retired_pages_pending, gpus(3, v100(0), v100(1), v100(2, **change)))
    assert (result.status, result.severity) == (status, Severity.WARNING)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(retired_pages_pending, gpus(2, v100(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(retired_pages_pending, gpus(1, v100(0, retired_pages_pending=True))).findings[0].finding
    assert finding.remedy.commands[0] == "sudo nvidia-smi --gpu-reset -i 0000:10:00.0"
