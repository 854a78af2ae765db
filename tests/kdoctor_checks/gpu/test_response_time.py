from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.response_time import response_time


@pytest.mark.parametrize(
    ("seconds", "status", "slow"),
    [
        ((0.04, 0.05, 0.04, 0.06), Status.PASS, []),
        ((0.04, 0.05, 0.04, 0.45), Status.PASS, []),
        ((0.04, 0.05, 0.04, 0.9), Status.FAIL, ["GPU 3"]),
        ((0.9, 1.0, 0.8, 1.2), Status.PASS, []),
        ((3.5, 3.6), Status.FAIL, ["GPU 0", "GPU 1"]),
        ((3.5,), Status.FAIL, ["GPU 0"]),
        ((0.04, None), Status.UNKNOWN, []),
        ((None, None), Status.SKIP, []),
    ],
)
def test_slow_answers_fail(seconds: tuple[float | None, ...], status: Status, slow: list[str]) -> None:
    found = gpus(len(seconds), *(gpu(index, answers_s=taken) for index, taken in enumerate(seconds)))
    result = compute_check(response_time, found)
    assert result.status is status
    assert [item.finding.subject[:5] for item in result.findings] == slow


def test_checklist_may_set_the_limits() -> None:
    found = gpus(1, gpu(0, answers_s=4.0))
    assert compute_check(response_time, found, most_s=10.0).status is Status.PASS


def test_lost_gpu_is_unknown_because_of_the_other_check() -> None:
    result = compute_check(response_time, gpus(2, gpu(0), lost_gpu(1)))
    assert result.status is Status.UNKNOWN
    assert result.unjudged[0].explained_by == ("gpu.responding",)
