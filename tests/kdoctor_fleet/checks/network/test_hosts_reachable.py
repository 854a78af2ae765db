from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment
from helpers.kdoctor_fleet.rdma import two_hosts
from kdoctor.model import Evidence, Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.network.hosts_reachable import hosts_reachable
from kdoctor_fleet.facts import JobHosts


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({"state": "connected"}, Status.PASS),
        ({"state": "refused"}, Status.PASS),
        ({"state": "timed-out", "error": "no answer within 4 s"}, Status.FAIL),
        ({"state": "unreachable", "error": "No route to host"}, Status.FAIL),
        ({"state": None}, Status.UNKNOWN),
        ({"state": None, "resolved": False}, Status.UNKNOWN),
    ],
)
def test_other_hosts_must_answer(other: dict[str, Any], status: Status) -> None:
    result = compute_check(hosts_reachable, two_hosts(other=other), environment())
    assert result.status is status
    assert {item.finding.subject for item in result.findings} <= {"worker 1 (node2:2222)"}


def test_each_other_host_is_one_outcome() -> None:
    outcomes = list(hosts_reachable.function(two_hosts(other={"state": "refused"}), environment()))
    assert [type(outcome) for outcome in outcomes] == [Evidence]


def test_job_on_one_machine_is_skipped() -> None:
    assert compute_check(hosts_reachable, JobHosts(), environment()).status is Status.SKIP
    assert compute_check(hosts_reachable, environment()).status is Status.SKIP


def test_config_that_cannot_be_read_is_unknown() -> None:
    assert compute_check(hosts_reachable, JobHosts(malformed="it is not JSON"), environment()).status is Status.UNKNOWN
    assert compute_check(hosts_reachable, environment(TF_CONFIG="{}")).status is Status.UNKNOWN
