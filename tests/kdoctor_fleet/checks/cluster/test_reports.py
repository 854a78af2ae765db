from dataclasses import replace

from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.reports import reports
from kdoctor_fleet.facts import UnreadReport


def test_file_that_cannot_be_read_is_unknown() -> None:
    result = compute_check(reports, replace(fleet(3), unread=(UnreadReport(source="a.json", reason="truncated"),)))
    assert result.status is Status.UNKNOWN
    assert [(item.subject, item.reason) for item in result.unjudged] == [("a.json", "truncated")]


def test_without_a_list_of_nodes_those_that_reported_are_counted() -> None:
    assert compute_check(reports, fleet(1)).evidence[0].brief == "1 node reported"
