from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import two_hosts
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.hosts_reverse import hosts_reverse
from kdoctor_fleet.facts import JobHosts


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({}, Status.PASS),
        ({"resolves_back": False}, Status.FAIL),
        ({"resolves_back": None}, Status.UNKNOWN),
        ({"resolved": False}, Status.UNKNOWN),
    ],
)
def test_addresses_have_names(other: dict[str, Any], status: Status) -> None:
    result = compute_check(hosts_reverse, two_hosts(other=other), environment())
    assert result.status is status
    assert {item.finding.subject for item in result.findings} <= {"worker 1 (node2:2222)"}


def test_job_on_one_machine_is_skipped() -> None:
    assert compute_check(hosts_reverse, JobHosts(), environment()).status is Status.SKIP
    assert compute_check(hosts_reverse, environment()).status is Status.SKIP


def test_config_that_cannot_be_read_is_unknown() -> None:
    assert compute_check(hosts_reverse, JobHosts(malformed="it is not JSON"), environment()).status is Status.UNKNOWN
    assert compute_check(hosts_reverse, environment(TF_CONFIG="{}")).status is Status.UNKNOWN
