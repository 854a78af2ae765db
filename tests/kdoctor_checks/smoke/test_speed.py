from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
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


def test_what_was_measured_is_evidence_in_words() -> None:
    result = compute_check(speed, _run())
    assert (result.status, result.severity) == (Status.PASS, Severity.INFO)
    assert [(item.subject, item.observed) for item in result.evidence] == [
        ("1 replica (gpu)", "1,000 examples/s, 64 ms a step"),
        ("2 replicas (gpu)", "1,500 examples/s, 85.3 ms a step, scaling efficiency 75%"),
        ("all-reduce", "2 GB/s sent from each of 2 replicas"),
        ("input pipeline", "900,000 examples/s alone, 600 times what the steps use: not input-bound"),
    ]


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (750.0, "750 examples/s alone, 0.5 times what the steps use: input-bound: the replicas would wait for data"),
        (3000.0, "3,000 examples/s alone, 2 times what the steps use: not input-bound"),
    ],
)
def test_it_says_whether_the_input_holds_the_steps_up(rate: float, words: str) -> None:
    result = compute_check(speed, _run(measures={**MEASURES, "input_per_s": rate}))
    assert result.evidence[-1].observed == words


def test_however_slow_it_is_no_failure() -> None:
    assert compute_check(speed, _run(measures={**MEASURES, "per_s 2": 10.0})).status is Status.PASS


def test_a_training_that_does_not_end_is_a_failure() -> None:
    assert compute_check(speed, _run(outcome="timed-out")).status is Status.FAIL


def test_is_unknown_without_a_rate() -> None:
    assert compute_check(speed, _run(measures={"efficiency": 1.0})).status is Status.UNKNOWN
