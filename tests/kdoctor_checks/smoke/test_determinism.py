from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor_checks.smoke.determinism import determinism


def _run(difference: float | None = 0.0, **changes: Any) -> SmokeRun:
    cases = (
        smoke_case("seed", 2, **{"measures": {"difference": difference}, **changes}),
        smoke_case("op-determinism", 2, measures={"difference": 0.0}),
    )
    return smoke_run("smoke.determinism", 2, *cases)


def test_passes_where_two_trainings_are_one() -> None:
    result = compute_check(determinism, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "weights differ by 0, step 0.01 s"


def test_warns_by_how_much_they_differ() -> None:
    assert "up to 3e-07" in compute_check(determinism, _run(3e-7)).findings[0].finding.observed
    assert "not finite" in compute_check(determinism, _run(None)).findings[0].finding.observed
    assert compute_check(determinism, _run(3e-7), tolerance=1e-6).status is Status.PASS


def test_is_unknown_without_a_comparison() -> None:
    assert compute_check(determinism, _run(measures={})).status is Status.UNKNOWN
