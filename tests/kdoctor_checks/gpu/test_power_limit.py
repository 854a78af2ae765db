from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.power_limit import power_limit


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"enforced_power_limit_w": 699.9}, Status.FAIL),
        ({"default_power_limit_w": 650.0}, Status.PASS),
        ({"enforced_power_limit_w": None, "errors": {"enforced_power_limit_w": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
        ({"default_power_limit_w": None, "errors": {"default_power_limit_w": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_limit_below_default_is_a_note(change: dict[str, Any], status: Status) -> None:
    result = compute_check(power_limit, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.INFO)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(power_limit, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(power_limit, gpus(1, gpu(0, enforced_power_limit_w=500.0))).findings[0].finding
    assert re.search(r"500 W.*700 W", finding.observed)
    assert finding.remedy.commands[0] == "sudo nvidia-smi -pl 700"


def test_checklist_can_allow_lower_share() -> None:
    low = gpus(1, gpu(0, enforced_power_limit_w=560.0))
    assert compute_check(power_limit, low, least_share=0.8).status is Status.PASS
    assert compute_check(power_limit, low, least_share=0.9).status is Status.FAIL
