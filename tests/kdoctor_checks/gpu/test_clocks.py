from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus, lost_gpu
from helpers.judging import compute_check
from kdoctor.model import Severity, Status
from kdoctor_checks.gpu.clocks import clocks


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ((0, 0, 0), Status.PASS),
        ((0x1, 0x1, 0x1), Status.PASS),
        ((0x4, 0x4, 0x4), Status.PASS),
        ((0x20, 0x20, 0x20), Status.PASS),  # gpu.thermal-slowdown
        ((0x8, 0x8, 0x8), Status.FAIL),
        ((0x8, 0x0, 0x8), Status.PASS),  # it flashed
        ((0x88, 0x88, 0x88), Status.FAIL),
        ((0x80, 0x80, 0x80), Status.FAIL),  # the child without its parent
        ((0x40, 0x40, 0x40), Status.FAIL),
        ((0x80, 0x80, 0x0), Status.PASS),  # gpu.thermal-slowdown
        ((0x8,), Status.UNKNOWN),  # a dump has one reading
        ((0x88,), Status.FAIL),
        ((0x80,), Status.FAIL),
        ((0x1,), Status.PASS),
        ((), Status.UNKNOWN),
        (None, Status.UNKNOWN),
    ],
)
def test_what_lasts_counts_and_a_flash_does_not(reasons: tuple[int, ...] | None, status: Status) -> None:
    result = compute_check(clocks, gpus(2, gpu(0), gpu(1, clock_event_reasons=reasons)))
    assert (result.status, result.severity) == (status, Severity.ERROR)


def test_eight_gpus_slowed_by_the_power_brake_while_pcie_looks_perfect() -> None:
    """Recorded: eight H100 at 86 of 1980 MHz."""
    braked = (gpu(index, clock_event_reasons=(0x88, 0x88, 0x88), clock_sm_mhz=86) for index in range(8))
    result = compute_check(clocks, gpus(8, *braked))
    assert len(result.findings) == 8
    assert result.findings[0].finding.observed == "HW Slowdown, HW Power Brake Slowdown, SM clock 86 of 1980 MHz"


def test_one_of_eight_is_slowed_while_the_parent_flag_is_clear() -> None:
    found = (gpu(index, clock_event_reasons=(0x40 if index == 5 else 0x0,) * 3) for index in range(8))
    result = compute_check(clocks, gpus(8, *found))
    assert [item.finding.subject for item in result.findings] == ["GPU 5 (0000:60:00.0)"]
    assert result.findings[0].finding.observed.startswith("HW Thermal Slowdown, ")
    assert len(result.evidence) == 7


def test_a_lost_gpu_is_left_out() -> None:
    assert compute_check(clocks, gpus(2, gpu(0), lost_gpu(1))).status is Status.PASS
