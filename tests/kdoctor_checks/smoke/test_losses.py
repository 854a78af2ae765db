from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._trained import cases_of
from kdoctor_checks.smoke.losses import losses


def _run(changed: str = "", **changes: Any) -> SmokeRun:
    cases = (smoke_case(name, 2, **(changes if name == changed else {})) for name in cases_of("smoke.losses"))
    return smoke_run("smoke.losses", 2, *cases)


@pytest.mark.parametrize("case", cases_of("smoke.losses"))
def test_a_feature_that_is_right_today_is_an_error_if_it_breaks(case: str) -> None:
    result = compute_check(losses, _run(case, weight_deviation=0.01))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert [item.finding.subject for item in result.findings] == [f"training {case}"]


def test_metric_is_compared() -> None:
    result = compute_check(losses, _run("sample-weight", measures={"metric mae": 1.0, "reference mae": 0.5}))
    assert "mae is 1 instead of 0.5" in result.findings[0].finding.observed
