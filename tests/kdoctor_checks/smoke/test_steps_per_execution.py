from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.steps_per_execution import steps_per_execution


def _run(**changes: Any) -> SmokeRun:
    cases = smoke_case("steps-per-execution", 2, **changes), smoke_case("steps-in-function", 2)
    return smoke_run("smoke.features", 2, *cases)


def test_passes_if_it_matches_one_device() -> None:
    assert compute_check(steps_per_execution, _run()).status is Status.PASS


def test_error_of_keras_3_is_a_warning() -> None:
    result = compute_check(
        steps_per_execution, _run(outcome="raised", error_type="InvalidArgumentError", phase="train")
    )
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.explained_by == ("job.steps-per-execution",)


def test_other_errors_and_differences_fail() -> None:
    other = compute_check(steps_per_execution, _run(outcome="raised", error_type="MemoryError", phase="strategy"))
    assert other.status is Status.FAIL
    assert "MemoryError" in other.findings[0].finding.observed
    assert compute_check(steps_per_execution, _run(weight_deviation=0.1)).status is Status.FAIL


def test_alternative_must_match_one_device() -> None:
    cases = smoke_case("steps-per-execution", 2), smoke_case("steps-in-function", 2, weight_deviation=0.1)
    result = compute_check(steps_per_execution, smoke_run("smoke.features", 2, *cases))
    assert [item.finding.subject for item in result.findings] == ["training steps-in-function"]


def test_is_unknown_if_not_compared() -> None:
    assert compute_check(steps_per_execution, _run(weight_deviation=None)).status is Status.UNKNOWN
