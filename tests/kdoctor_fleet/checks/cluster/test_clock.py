from typing import Any

import pytest

from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.clock import clock


def section(**facts: str) -> dict[str, Any]:
    return {"sections": {"clock": {name.replace("_", "-"): value for name, value in facts.items()}}}


GOOD = section(synchronized="yes", offset_seconds="0.0002")


def test_node_without_time_service_is_unknown_where_others_have_one() -> None:
    result = compute_check(clock, fleet(2, node0001=GOOD))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.unjudged] == ["node0002"]


@pytest.mark.parametrize("started_at", ["", "yesterday", "2026-01-01T00:09:00"])
def test_time_that_cannot_be_compared_is_not_a_wrong_clock(started_at: str) -> None:
    assert compute_check(clock, fleet(1, node0001={"started_at": started_at})).findings == ()


def test_offset_limit_is_a_parameter() -> None:
    change = section(synchronized="yes", offset_seconds="0.5")
    assert compute_check(clock, fleet(1, node0001=change)).status is Status.PASS
    assert compute_check(clock, fleet(1, node0001=change), most_seconds=0.1).status is Status.FAIL
