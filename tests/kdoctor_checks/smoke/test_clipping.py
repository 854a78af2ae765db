from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.clipping import clipping
from kdoctor_checks.smoke.clipping_options import clipping_options

CHECKS = (clipping, clipping_options)
CASES: dict[str, tuple[str, ...]] = {
    clipping.id: ("clipnorm",),
    clipping_options.id: ("global-clipnorm", "clipvalue", "clip-after-reduction", "tf-keras"),
}
WAYS = [
    (clipping, "clipnorm", 0.031),
    (clipping_options, "global-clipnorm", 0.021),
    (clipping_options, "clipvalue", 0.024),
]
MEASURES: dict[str, float | None] = {"reference_way": 0.05, "longest_way": 0.06}


def _judge(check: Check, changed: str = "", **changes: Any) -> Result:
    cases = [
        smoke_case(name, 2, **{"measures": MEASURES, **(changes if name == changed else {})})
        for name in CASES[check.id]
    ]
    return compute_check(check, smoke_run(check.scenario or "", 2, *cases))


@pytest.mark.parametrize("check", CHECKS)
def test_passes_if_all_match_one_device(check: Check) -> None:
    assert _judge(check).status is Status.PASS


@pytest.mark.parametrize(("check", "case", "deviation"), WAYS)
def test_keras_3_fails_as_measured(check: Check, case: str, deviation: float) -> None:
    result = _judge(check, case, weight_deviation=deviation)
    (found,) = [item.finding for item in result.findings]
    assert (result.status, result.severity, found.subject) == (Status.FAIL, Severity.WARNING, f"training {case}")
    assert str(deviation) in found.observed
    assert found.remedy.look == ("kdoctor explain --reproduce clipping",)
    assert "job.clipping" in found.explained_by
    assert ("smoke.clipping" in found.explained_by) == (check is clipping_options)


@pytest.mark.parametrize("case", ["clip-after-reduction", "tf-keras"])
def test_failed_alternative_is_not_blamed_on_clipping(case: str) -> None:
    result = _judge(clipping_options, case, weight_deviation=0.2)
    assert result.status is Status.FAIL
    assert result.findings[0].finding.remedy.look == ()


@pytest.mark.parametrize(("check", "case", "deviation"), WAYS)
def test_ignored_clipping_fails(check: Check, case: str, deviation: float) -> None:
    result = _judge(check, case, measures={"reference_way": 0.3, "longest_way": 0.06})
    assert result.status is Status.FAIL
    assert "0.3" in result.findings[0].finding.observed


@pytest.mark.parametrize(("check", "case", "deviation"), WAYS)
def test_is_unknown_without_measures(check: Check, case: str, deviation: float) -> None:
    assert _judge(check, case, measures={}).status is Status.UNKNOWN
    assert _judge(check, case, weight_deviation=None).status is Status.UNKNOWN
