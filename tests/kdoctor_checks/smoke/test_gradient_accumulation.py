from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.gradient_accumulation import gradient_accumulation

MEASURES: dict[str, float | None] = {
    **{f"{word} {what}": 6.0 for word in ("due", "done") for what in ("updates", "steps", "epochs")},
    "metric": 0.5,
    "metric_reference": 0.5,
}


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.state", 2, smoke_case("accumulation", 2, **{"measures": MEASURES, **changes}))


def test_passes_where_it_equals_one_device() -> None:
    assert compute_check(gradient_accumulation, _run()).status is Status.PASS


def test_warns_of_the_error_of_keras_3() -> None:
    message = "Exception encountered when calling Cond.call().\n\n\x1b[1m`merge_call` called while\x1b[0m"
    run = _run(outcome="raised", error_type="RuntimeError", error_message=message, phase="train")
    result = compute_check(gradient_accumulation, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.observed == (
        "keras 3.15.1 cannot accumulate gradients over replicas: RuntimeError in phase train: `merge_call` called while"
    )


def test_warns_of_an_update_too_many_and_of_other_weights() -> None:
    many = _run(measures={**MEASURES, "done updates": 12.0})
    assert "12 updates were counted" in compute_check(gradient_accumulation, many).findings[0].finding.observed
    assert compute_check(gradient_accumulation, _run(weight_deviation=0.2)).status is Status.FAIL


def test_is_skipped_where_keras_has_no_such_option() -> None:
    run = _run(outcome="skipped", skip_reason="this Keras cannot accumulate gradients")
    assert compute_check(gradient_accumulation, run).status is Status.SKIP


def test_is_unknown_without_its_counts() -> None:
    assert compute_check(gradient_accumulation, _run(measures={})).status is Status.UNKNOWN
