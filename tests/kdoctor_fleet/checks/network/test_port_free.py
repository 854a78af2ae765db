from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import two_hosts
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.port_free import port_free
from kdoctor_fleet.facts import JobHosts


@pytest.mark.parametrize(
    ("own", "status"),
    [
        ({}, Status.PASS),
        ({"port_free": False, "error": "Address already in use"}, Status.FAIL),
        ({"port_free": None}, Status.UNKNOWN),
        ({"own": False}, Status.SKIP),
    ],
)
def test_own_port_must_be_free(own: dict[str, Any], status: Status) -> None:
    result = compute_check(port_free, two_hosts(own=own), environment())
    assert result.status is status
    assert {item.finding.subject for item in result.findings} <= {"worker 0 (node1:2222)"}


def test_job_on_one_machine_is_skipped() -> None:
    assert compute_check(port_free, JobHosts(), environment()).status is Status.SKIP
    assert compute_check(port_free, environment()).status is Status.SKIP


def test_config_that_cannot_be_read_is_unknown() -> None:
    assert compute_check(port_free, JobHosts(malformed="it is not JSON"), environment()).status is Status.UNKNOWN
    assert compute_check(port_free, environment(TF_CONFIG="{}")).status is Status.UNKNOWN
