from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.speed import speed

MEASURES = {
    "per_s 1": 1000.0,
    "step 1": 0.064,
    "per_s 2": 1500.0,
    "step 2": 0.08533,
    "efficiency": 0.75,
    "all_reduce_gbs": 2.0,
    "input_per_s": 9e5,
}


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.speed", 2, smoke_case("throughput", 2, **{"measures": MEASURES, **changes}))


def test_measurements_are_evidence(screen: SnapshotAssertion) -> None:
    result = compute_check(speed, _run())
    assert (result.status, result.severity) == (Status.PASS, Severity.INFO)
    assert "\n".join(f"{item.subject}: {item.observed}" for item in result.evidence) == screen


@pytest.mark.parametrize(
    ("rate", "ratio", "bound"),
    [(750.0, "0.5 times", True), (3000.0, "2 times", False)],
)
def test_slow_input_pipeline_is_input_bound(rate: float, ratio: str, *, bound: bool) -> None:
    observed = compute_check(speed, _run(measures={**MEASURES, "input_per_s": rate})).evidence[-1].observed
    assert ratio in observed
    assert ("not input-bound" not in observed) is bound


def test_slow_training_is_not_a_failure() -> None:
    assert compute_check(speed, _run(measures={**MEASURES, "per_s 2": 10.0})).status is Status.PASS


def test_unfinished_training_fails() -> None:
    assert compute_check(speed, _run(outcome="timed-out")).status is Status.FAIL


def test_is_unknown_without_a_rate() -> None:
    assert compute_check(speed, _run(measures={"efficiency": 1.0})).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("rates", "efficiencies"),
    [
        ({1: 1000.0, 2: 1500.0}, [None, "75%"]),
        ({1: 1000.0, 4: 3600.0}, [None, "90%"]),
        ({1: 1000.0}, [None]),
        ({2: 1500.0}, [None]),
        ({2: 1500.0, 4: 3600.0}, [None, None]),
    ],
)
def test_efficiency_compares_with_one_replica(rates: dict[int, float], efficiencies: list[str | None]) -> None:
    measures = {f"per_s {replicas}": rate for replicas, rate in rates.items()}
    observed = [item.observed for item in compute_check(speed, _run(measures=measures)).evidence]
    stated = [found.partition(", scaling efficiency ")[2] or None for found in observed]
    assert stated == efficiencies
