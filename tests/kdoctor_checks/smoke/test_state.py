from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.state import state

COUNTS = {f"{word} {what}": 12.0 for word in ("due", "done") for what in ("updates", "steps", "epochs")}
MEASURES: dict[str, float | None] = {**COUNTS, "metric": 0.5, "metric_reference": 0.5}


def _run(measures: dict[str, float | None] | None = None, replicas: int = 2, **changes: Any) -> SmokeRun:
    cases = (
        smoke_case("adam", replicas, measures={**MEASURES, **(measures or {})}, **changes),
        smoke_case("momentum", replicas, measures=MEASURES),
    )
    return smoke_run("smoke.state", replicas, *cases)


def test_passes_if_everything_is_counted_once() -> None:
    assert compute_check(state, _run()).status is Status.PASS


@pytest.mark.parametrize(
    ("run", "decisive"),
    [
        (_run({"done updates": 11.0}), "11 updates"),
        (_run({"done steps": 24.0}), "24 steps"),
        (_run({"metric": 0.7}), "0.7 instead of 0.5"),
        (_run(weight_deviation=0.1), "0.1"),
        (_run(outcome="raised", error_type="RuntimeError"), "RuntimeError"),
    ],
)
def test_different_state_fails(run: SmokeRun, decisive: str) -> None:
    result = compute_check(state, run)
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


@pytest.mark.parametrize("missing", ["done updates", "due epochs", "metric"])
def test_is_unknown_without_a_measure(missing: str) -> None:
    assert compute_check(state, _run({missing: None})).status is Status.UNKNOWN


def test_is_skipped_on_one_replica() -> None:
    assert compute_check(state, _run(replicas=1)).status is Status.SKIP
