from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.persistence import persistence

LOADED: dict[str, float | None] = {"variables": 8.0, "equal on 1": 8.0, "equal on 2": 8.0}
RESUMED: dict[str, float | None] = {"epochs": 3.0, "epochs_after": 2.0}


def _run(
    loaded: dict[str, float | None] = LOADED, resumed: dict[str, float | None] = RESUMED, **changes: Any
) -> SmokeRun:
    cases = (
        smoke_case("model-file", 2, measures=loaded),
        smoke_case("weights-file", 2, measures=LOADED),
        smoke_case("backup-and-restore", 2, measures=resumed, **changes),
    )
    return smoke_run("smoke.persistence", 2, *cases)


def test_passes_if_weights_are_bit_equal_and_training_resumes() -> None:
    result = compute_check(persistence, _run())
    assert result.status is Status.PASS
    for part in ("saved on 2 replicas", "loaded on 1, 2", "8 variables"):
        assert part in result.evidence[0].observed


@pytest.mark.parametrize(
    ("run", "decisive"),
    [
        (_run({**LOADED, "equal on 1": 7.0}), "7 of 8 variables"),
        (_run(resumed={"epochs": 3.0, "epochs_after": 3.0}), "3 of 3 epochs"),
        (_run(weight_deviation=0.01), "0.01"),
        (_run(outcome="raised", error_type="ValueError"), "ValueError"),
    ],
)
def test_changed_weights_and_restarts_fail(run: SmokeRun, decisive: str) -> None:
    result = compute_check(persistence, run)
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


@pytest.mark.parametrize("run", [_run({"variables": 8.0}), _run(resumed={}), _run(weight_deviation=None)])
def test_is_unknown_without_a_comparison(run: SmokeRun) -> None:
    assert compute_check(persistence, run).status is Status.UNKNOWN
