from __future__ import annotations

from helpers.facts import gpu, gpus, lost_gpu, v100
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.equal_power_limits import equal_power_limits


def test_one_lower_limit_of_four_warns() -> None:
    result = compute_check(equal_power_limits, gpus(4, gpu(0), gpu(1, enforced_power_limit_w=500.0), gpu(2), gpu(3)))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    (finding,) = (item.finding for item in result.findings)
    assert finding.subject == "GPU 1 (0000:20:00.0)"
    assert "500 W" in finding.observed
    assert "700 W" in finding.expected


def test_equal_lower_limit_passes() -> None:
    assert (
        compute_check(
            equal_power_limits, gpus(2, *(gpu(index, enforced_power_limit_w=500.0) for index in range(2)))
        ).status
        is Status.PASS
    )


def test_lower_of_two_limits_is_named() -> None:
    result = compute_check(equal_power_limits, gpus(2, gpu(0, enforced_power_limit_w=500.0), gpu(1)))
    assert [item.finding.subject for item in result.findings] == ["GPU 0 (0000:10:00.0)"]


def test_limits_are_compared_per_model() -> None:
    assert compute_check(equal_power_limits, gpus(2, gpu(0), v100(1))).status is Status.PASS


def test_small_differences_do_not_count() -> None:
    assert (
        compute_check(equal_power_limits, gpus(3, gpu(0), gpu(1), gpu(2, enforced_power_limit_w=699.0))).status
        is Status.PASS
    )


def test_unread_limit_is_unknown() -> None:
    broken = gpu(1, enforced_power_limit_w=None, errors={"enforced_power_limit_w": "Unknown"})
    assert compute_check(equal_power_limits, gpus(2, gpu(0), broken)).status is Status.UNKNOWN


def test_single_gpu_is_skipped() -> None:
    assert compute_check(equal_power_limits, gpus(1)).status is Status.SKIP
    assert compute_check(equal_power_limits, gpus(2, gpu(0), lost_gpu(1))).status is Status.UNKNOWN
