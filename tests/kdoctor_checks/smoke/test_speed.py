from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.speed import speed

MEASURES = {
    "per_s 1": 1000.0,
    "per_s 2": 1500.0,
    "efficiency": 0.75,
    "step_s": 0.1,
    "all_reduce": 2e9,
    "input_per_s": 9e5,
}


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.speed", 2, smoke_case("throughput", 2, **{"measures": MEASURES, **changes}))


def test_what_was_measured_is_evidence() -> None:
    result = compute_check(speed, _run())
    assert (result.status, result.severity) == (Status.PASS, Severity.INFO)
    assert result.evidence[0].observed == (
        "1 replicas 1e+03 examples/s; 2 replicas 1.5e+03 examples/s; scaling efficiency 0.75; step 0.1 s; "
        "all-reduce 2e+09 B/s for each replica; input alone 9e+05 examples/s (gpu)"
    )


def test_however_slow_it_is_no_failure() -> None:
    assert compute_check(speed, _run(measures={**MEASURES, "efficiency": 0.01})).status is Status.PASS


def test_a_training_that_does_not_end_is_a_failure() -> None:
    assert compute_check(speed, _run(outcome="timed-out")).status is Status.FAIL


def test_is_unknown_without_a_rate() -> None:
    assert compute_check(speed, _run(measures={"efficiency": 1.0})).status is Status.UNKNOWN
