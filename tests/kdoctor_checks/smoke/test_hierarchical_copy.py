from __future__ import annotations

from helpers.comparison_checks import ComparisonCheck
from helpers.facts import smoke_case, smoke_run
from kdoctor.model import Action, Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.hierarchical_copy import hierarchical_copy


class TestHierarchicalCopy(ComparisonCheck):
    check = hierarchical_copy
    scenario = "smoke.cross-device"
    cases = ("hierarchical-copy",)

    def test_is_skipped_on_one_replica(self) -> None:
        assert compute_check(self.check, self.run(replicas=1)).status is Status.SKIP


def test_odd_number_of_devices_fails_with_its_fix() -> None:
    run = smoke_run("smoke.cross-device", 3, smoke_case("hierarchical-copy", 3, weight_deviation=0.11))
    result = compute_check(hierarchical_copy, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    finding = result.findings[0].finding
    assert "odd number of devices" in finding.observed
    assert finding.remedy.action is Action.CHANGE_CODE
    assert "ReductionToOneDevice" in finding.remedy.summary


def test_even_number_of_devices_fails_without_that_fix() -> None:
    run = smoke_run("smoke.cross-device", 2, smoke_case("hierarchical-copy", 2, weight_deviation=0.11))
    result = compute_check(hierarchical_copy, run)
    assert result.status is Status.FAIL
    assert "odd number" not in result.findings[0].finding.observed
