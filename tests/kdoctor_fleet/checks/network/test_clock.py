from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import two_hosts
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.clock import clock
from kdoctor_fleet.facts import JobHosts


@pytest.mark.parametrize(
    ("clocks", "status"),
    [
        ({}, Status.PASS),
        ({"clock_synchronized": False}, Status.FAIL),
        ({"clock_offset_s": -0.5}, Status.FAIL),
        ({"clock_offset_s": None}, Status.PASS),
        ({"clock_synchronized": None}, Status.UNKNOWN),
    ],
)
def test_clock_must_be_synchronized(clocks: dict[str, Any], status: Status) -> None:
    result = compute_check(clock, two_hosts(**clocks), environment())
    assert result.status is status
    assert {item.finding.subject for item in result.findings} <= {"clock"}


def test_job_on_one_machine_is_skipped() -> None:
    assert compute_check(clock, JobHosts(), environment()).status is Status.SKIP
    assert compute_check(clock, environment()).status is Status.SKIP


def test_config_that_cannot_be_read_is_unknown() -> None:
    assert compute_check(clock, JobHosts(malformed="it is not JSON"), environment()).status is Status.UNKNOWN
    assert compute_check(clock, environment(TF_CONFIG="{}")).status is Status.UNKNOWN
