from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.closed_form import closed_form

MEASURES = {"one_device": 1e-8, "steps": 12.0, "iterations": 12.0}


def _run(measures: dict[str, float | None] | None = None, **changes: Any) -> SmokeRun:
    case = smoke_case("mirrored", 2, measures={**MEASURES, **(measures or {})}, **changes)
    return smoke_run("smoke.closed-form", 2, case)


def test_passes_if_keras_matches_numpy() -> None:
    assert compute_check(closed_form, _run()).status is Status.PASS


@pytest.mark.parametrize(
    ("run", "decisive"),
    [
        (_run({"iterations": 11.0}), "11 updates after 12 steps"),
        (_run({"one_device": 0.05}), "0.05"),
        (_run(weight_deviation=0.2), "0.2"),
        (_run(losses=(1.0, 0.8)), "1, 0.8"),
        (_run(outcome="died", signal="SIGSEGV"), "SIGSEGV"),
    ],
)
def test_fails_if_keras_differs_from_numpy(run: SmokeRun, decisive: str) -> None:
    result = compute_check(closed_form, run)
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


@pytest.mark.parametrize("missing", sorted(MEASURES))
def test_is_unknown_without_a_measure(missing: str) -> None:
    assert compute_check(closed_form, _run({missing: None})).status is Status.UNKNOWN
