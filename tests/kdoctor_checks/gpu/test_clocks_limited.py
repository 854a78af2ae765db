from __future__ import annotations

import pytest

from helpers.facts import gpu, gpus
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.clocks_limited import clocks_limited


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ((0x1, 0x1, 0x1), Status.PASS),
        ((0x2, 0x2, 0x2), Status.FAIL),
        ((0x4, 0x4, 0x4), Status.FAIL),
        ((0x4, 0x0, 0x4), Status.PASS),
        ((0x10, 0x10, 0x10), Status.FAIL),
        ((0x100, 0x100, 0x100), Status.FAIL),
        ((0x88, 0x88, 0x88), Status.PASS),
        (None, Status.UNKNOWN),
    ],
)
def test_limiting_settings_are_a_note(reasons: tuple[int, ...] | None, status: Status) -> None:
    result = compute_check(clocks_limited, gpus(2, gpu(0), gpu(1, clock_event_reasons=reasons)))
    assert (result.status, result.severity) == (status, Severity.INFO)
