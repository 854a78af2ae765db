import pytest

from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.same_checklist import same_checklist


@pytest.mark.parametrize(("field", "value"), [("checklist", "cpu-smoke, version 1"), ("kdoctor", "0.0.9")])
def test_node_with_another_checklist_or_kdoctor_is_named(field: str, value: str) -> None:
    result = compute_check(same_checklist, fleet(3, node0002={field: value}))
    assert [judged.finding.subject for judged in result.findings] == ["node0002"]
    assert value in result.findings[0].finding.observed


def test_one_checklist_passes() -> None:
    assert compute_check(same_checklist, fleet(2)).status is Status.PASS


def test_one_node_has_no_peers() -> None:
    assert compute_check(same_checklist, fleet(1)).status is Status.SKIP
