from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.clipping import clipping

CASES = ("clipnorm", "global-clipnorm", "clipvalue", "clip-after-reduction")
MEASURES: dict[str, float | None] = {"reference_way": 0.05, "longest_way": 0.06}


def _run(changed: str = "clipnorm", **changes: Any) -> SmokeRun:
    cases = (smoke_case(name, 2, **{"measures": MEASURES, **(changes if name == changed else {})}) for name in CASES)
    return smoke_run("smoke.features", 2, *cases)


def test_passes_if_all_match_one_device() -> None:
    assert compute_check(clipping, _run()).status is Status.PASS


@pytest.mark.parametrize(("case", "deviation"), [("clipnorm", 0.035), ("global-clipnorm", 0.021), ("clipvalue", 0.024)])
def test_keras_3_fails_as_measured(case: str, deviation: float) -> None:
    result = compute_check(clipping, _run(case, weight_deviation=deviation))
    (found,) = [item.finding for item in result.findings]
    assert (result.status, result.severity, found.subject) == (Status.FAIL, Severity.WARNING, f"training {case}")
    assert str(deviation) in found.observed
    assert found.remedy.look == ("kdoctor explain --reproduce clipping",)
    assert "job.clipping" in found.explained_by


def test_failed_alternative_is_not_blamed_on_clipping() -> None:
    result = compute_check(clipping, _run("clip-after-reduction", weight_deviation=0.2))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.remedy.look == ()


def test_ignored_clipping_fails() -> None:
    result = compute_check(clipping, _run(measures={"reference_way": 0.3, "longest_way": 0.06}))
    assert result.status is Status.FAIL
    assert "0.3" in result.findings[0].finding.observed


def test_is_unknown_without_measures() -> None:
    assert compute_check(clipping, _run(measures={})).status is Status.UNKNOWN
    assert compute_check(clipping, _run(weight_deviation=None)).status is Status.UNKNOWN
