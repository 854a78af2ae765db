from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.clocks import clocks


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ((0, 0, 0), Status.PASS),
        ((0x1, 0x1, 0x1), Status.PASS),
        ((0x4, 0x4, 0x4), Status.PASS),
        ((0x20, 0x20, 0x20), Status.PASS),  # gpu.thermal-slowdown
        ((0x8, 0x8, 0x8), Status.FAIL),
        ((0x8, 0x0, 0x8), Status.PASS),  # active for a moment
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
def test_lasting_slowdown_fails_and_transient_one_does_not(reasons: tuple[int, ...] | None, status: Status) -> None:
    result = compute_check(clocks, gpus(2, gpu(0), gpu(1, clock_event_reasons=reasons)))
    assert (result.status, result.severity) == (status, Severity.ERROR)


def test_power_brake_on_eight_gpus_fails_with_healthy_pcie() -> None:
    """Recorded: eight H100 at 86 of 1980 MHz."""
    braked = (gpu(index, clock_event_reasons=(0x88, 0x88, 0x88), clock_sm_mhz=86) for index in range(8))
    result = compute_check(clocks, gpus(8, *braked))
    assert len(result.findings) == 8
    assert result.findings[0].finding.observed.endswith("SM clock 86 of 1980 MHz")
    assert "HW Power Brake Slowdown" in result.findings[0].finding.observed


def test_one_of_eight_is_slowed_while_parent_flag_is_clear() -> None:
    found = (gpu(index, clock_event_reasons=(0x40 if index == 5 else 0x0,) * 3) for index in range(8))
    result = compute_check(clocks, gpus(8, *found))
    assert [item.finding.subject for item in result.findings] == ["GPU 5 (0000:60:00.0)"]
    assert "HW Thermal Slowdown" in result.findings[0].finding.observed
    assert len(result.evidence) == 7


def test_gpus_with_one_cause_share_headline_and_fix() -> None:
    speeds = (86, 84, 90)
    braked = [gpu(index, clock_event_reasons=(0x88,) * 3, clock_sm_mhz=speed) for index, speed in enumerate(speeds)]
    hot = gpu(3, clock_event_reasons=(0x48,) * 3, clock_sm_mhz=900)
    found = [item.finding for item in compute_check(clocks, gpus(4, *braked, hot)).findings]
    assert [finding.headline for finding in found] == [
        *["held at 84 to 90 of 1980 MHz by HW Power Brake Slowdown"] * 3,
        "held at 900 of 1980 MHz by HW Thermal Slowdown",
    ]
    assert len({finding.remedy for finding in found}) == 1
    assert found[0].remedy.look[-1] == "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK"


def test_unread_clock_leaves_the_cause_as_headline() -> None:
    found = compute_check(clocks, gpus(1, gpu(0, clock_event_reasons=(0x88,) * 3, clock_sm_mhz=None)))
    assert found.findings[0].finding.headline == "slowed down by HW Power Brake Slowdown"
