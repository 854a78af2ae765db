from __future__ import annotations

import pytest

from helpers.facts import environment, gpu, gpus, lost_gpu
from kdoctor.engine.report import Result
from kdoctor.facts import Environment, Gpus
from kdoctor.model import Action, Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.count_expected import count_expected


def judged(found: Gpus, count: int | None = None, at_least: int | None = None, mask: str | None = None) -> Result:
    wanted = Assumptions(gpus=GpuAssumption(count=count, at_least=at_least))
    return compute_check(count_expected, found, visible(mask), assumptions=wanted)


def visible(mask: str | None) -> Environment:
    return environment() if mask is None else environment(CUDA_VISIBLE_DEVICES=mask)


@pytest.mark.parametrize(
    ("found", "count", "at_least", "status"),
    [
        (8, 8, None, Status.PASS),
        (7, 8, None, Status.FAIL),
        (9, 8, None, Status.FAIL),
        (1, None, 2, Status.FAIL),
        (2, None, 2, Status.PASS),
        (3, None, 2, Status.PASS),
        (1, None, None, Status.PASS),
        (0, None, None, Status.FAIL),
        (0, None, 0, Status.PASS),
    ],
)
def test_count_is_compared_with_checklist(found: int, count: int | None, at_least: int | None, status: Status) -> None:
    assert judged(gpus(found, count=found), count, at_least).status is status


def test_without_gpu_assumptions_one_is_enough() -> None:
    assert compute_check(count_expected, gpus(1), environment()).status is Status.PASS


def test_lost_gpu_does_not_count() -> None:
    result = judged(gpus(3, gpu(0), lost_gpu(1), gpu(2)), count=3)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed.startswith("2 ")
    assert finding.observed.endswith("GPU 1")
    assert finding.remedy.action is Action.INSPECT_HARDWARE


def test_incomplete_list_of_gpus_is_unknown() -> None:
    assert judged(gpus(8, count=None, errors={"count": "Unknown"}), count=8).status is Status.UNKNOWN
    assert judged(gpus(1, gpu(0), count=4), count=1).status is Status.UNKNOWN
    assert judged(Gpus(state="failed", error="Unknown Error"), count=0).status is Status.SKIP
    assert judged(Gpus(state="failed", error="Unknown Error"), count=1).status is Status.UNKNOWN
    assert compute_check(count_expected).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("mask", "count", "status", "command"),
    [
        ("0,1,3,4,5,6,7", 7, Status.PASS, ""),
        (None, 7, Status.FAIL, "export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6"),
        ("0,1,3,4,5,6,7", 8, Status.FAIL, "unset CUDA_VISIBLE_DEVICES"),
        ("", 8, Status.FAIL, "unset CUDA_VISIBLE_DEVICES"),
        ("GPU-nothing-like-it", 8, Status.FAIL, "unset CUDA_VISIBLE_DEVICES"),
        ("MIG-1", 8, Status.UNKNOWN, ""),
    ],
)
def test_hidden_gpus_are_not_usable(mask: str | None, count: int, status: Status, command: str) -> None:
    result = judged(gpus(8), count=count, mask=mask)
    assert result.status is status
    assert "".join(item.finding.remedy.commands[-1] for item in result.findings) == command


def test_lost_gpu_that_is_hidden_does_not_matter() -> None:
    four = gpus(4, gpu(0), lost_gpu(1), gpu(2), gpu(3))
    assert judged(four, count=3, mask="0,2,3").status is Status.PASS
    assert judged(four, count=4, mask="0,1,2,3").findings[0].finding.remedy.action is Action.INSPECT_HARDWARE


def test_fix_for_one_gpu_is_its_checklist() -> None:
    commands = judged(gpus(1), at_least=2).findings[0].finding.remedy.commands
    assert commands == ("kdoctor check --checklist single-gpu-keras",)


def test_without_environment_only_too_few_gpus_are_certain() -> None:
    assert compute_check(count_expected, gpus(2)).status is Status.UNKNOWN
    four = Assumptions(gpus=GpuAssumption(count=4))
    assert compute_check(count_expected, gpus(2), assumptions=four).status is Status.FAIL
    assert compute_check(count_expected, gpus(8), assumptions=four).status is Status.UNKNOWN
