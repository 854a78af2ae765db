from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.persistence_mode import persistence_mode


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"persistence_mode": False}, Status.FAIL),
        ({"persistence_mode": None, "errors": {"persistence_mode": "NVML_ERROR_UNKNOWN"}}, Status.UNKNOWN),
    ],
)
def test_off_is_a_note(change: dict[str, Any], status: Status) -> None:
    result = compute_check(persistence_mode, gpus(3, gpu(0), gpu(1), gpu(2, **change)))
    assert (result.status, result.severity) == (status, Severity.INFO)
    named = [item.finding.subject for item in result.findings] + [item.subject for item in result.unjudged]
    assert named == ([] if status is Status.PASS else ["GPU 2 (0000:30:00.0)"])


def test_lost_gpu_is_unknown() -> None:
    result = compute_check(persistence_mode, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 (0000:10:00.0)"]


def test_finding_has_commands() -> None:
    finding = compute_check(persistence_mode, gpus(1, gpu(0, persistence_mode=False))).findings[0].finding
    assert finding.remedy.commands == ("sudo nvidia-smi -pm 1",)


def test_checklist_can_expect_off() -> None:
    assert compute_check(persistence_mode, gpus(1), expected=False).status is Status.FAIL
    assert (
        compute_check(persistence_mode, gpus(1, gpu(0, persistence_mode=False)), expected=False).status is Status.PASS
    )


def test_one_command_sets_the_mode_of_the_gpus_without_it() -> None:
    off = (gpu(index, persistence_mode=index == 1) for index in range(3))
    commands = {item.finding.remedy.commands for item in compute_check(persistence_mode, gpus(3, *off)).findings}
    assert commands == {("sudo nvidia-smi -i 0000:10:00.0,0000:30:00.0 -pm 1",)}
