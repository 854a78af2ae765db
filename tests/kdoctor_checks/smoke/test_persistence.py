from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
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


def test_passes_where_everything_is_bit_equal_and_resumed() -> None:
    result = compute_check(persistence, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "saved on 2 replicas; loaded on 1, 2: all 8 variables bit-equal"


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (_run({**LOADED, "equal on 1": 7.0}), "7 of 8 variables are equal on 1"),
        (_run(resumed={"epochs": 3.0, "epochs_after": 3.0}), "it began anew"),
        (_run(weight_deviation=0.01), "resumed, the weights differ by up to 0.01"),
        (_run(outcome="raised", error_type="ValueError"), "ValueError"),
    ],
)
def test_fails(run: SmokeRun, words: str) -> None:
    result = compute_check(persistence, run)
    assert result.status is Status.FAIL
    assert words in result.findings[0].finding.observed


@pytest.mark.parametrize("run", [_run({"variables": 8.0}), _run(resumed={}), _run(weight_deviation=None)])
def test_is_unknown_without_a_comparison(run: SmokeRun) -> None:
    assert compute_check(persistence, run).status is Status.UNKNOWN
