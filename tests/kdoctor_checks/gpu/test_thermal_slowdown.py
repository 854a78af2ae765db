from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.thermal_slowdown import thermal_slowdown


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ((0x1, 0x1, 0x1), Status.PASS),
        ((0x20, 0x20, 0x20), Status.FAIL),
        ((0x20,), Status.FAIL),
        ((0x20, 0x0, 0x20), Status.PASS),
        ((0x40, 0x0, 0x0), Status.FAIL),  # the hardware, briefly
        ((0x40, 0x40, 0x40), Status.PASS),  # gpu.clocks
        ((0x8, 0x0, 0x0), Status.PASS),  # the parent flag is set briefly when the performance state changes
        (None, Status.UNKNOWN),
    ],
)
def test_thermal_slowdown_warns(reasons: tuple[int, ...] | None, status: Status) -> None:
    result = compute_check(thermal_slowdown, gpus(2, gpu(0), gpu(1, clock_event_reasons=reasons)))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_finding_separates_lasting_from_transient_slowdown() -> None:
    found = gpus(1, gpu(0, clock_event_reasons=(0x20, 0x60, 0x20)))
    observed = compute_check(thermal_slowdown, found).findings[0].finding.observed
    assert re.search(r"SW Thermal Slowdown, transient HW Thermal Slowdown\), SM clock 345 of 1980 MHz", observed)


def test_heat_with_another_cause_is_explained_by_it() -> None:
    def explained(**state: Any) -> tuple[str, ...]:
        (found,) = compute_check(thermal_slowdown, gpus(1, gpu(0, **state))).findings
        return found.finding.explained_by

    assert explained(clock_event_reasons=(0x20,) * 3) == ()
    assert explained(clock_event_reasons=(0x60,) * 3) == ("gpu.clocks",)
    assert explained(clock_event_reasons=(0x20,) * 3, fan_speed_percent=0) == ("gpu.fan",)
