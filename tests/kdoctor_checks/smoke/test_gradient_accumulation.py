from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.gradient_accumulation import gradient_accumulation

MEASURES: dict[str, float | None] = {
    **{f"{word} {what}": 6.0 for word in ("due", "done") for what in ("updates", "steps", "epochs")},
    "metric": 0.5,
    "metric_reference": 0.5,
}


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.state", 2, smoke_case("accumulation", 2, **{"measures": MEASURES, **changes}))


def test_passes_if_it_matches_one_device() -> None:
    assert compute_check(gradient_accumulation, _run()).status is Status.PASS


def test_error_of_keras_3_is_a_warning() -> None:
    message = "Exception encountered when calling Cond.call().\n\n\x1b[1m`merge_call` called while\x1b[0m"
    run = _run(outcome="raised", error_type="RuntimeError", error_message=message, phase="train")
    result = compute_check(gradient_accumulation, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert "RuntimeError in phase train: `merge_call` called while" in result.findings[0].finding.observed


def test_extra_updates_and_different_weights_are_a_warning() -> None:
    many = _run(measures={**MEASURES, "done updates": 12.0})
    assert "12 updates" in compute_check(gradient_accumulation, many).findings[0].finding.observed
    assert compute_check(gradient_accumulation, _run(weight_deviation=0.2)).status is Status.FAIL


def test_is_skipped_on_a_keras_without_the_option() -> None:
    run = _run(outcome="skipped", skip_reason="this Keras cannot accumulate gradients")
    assert compute_check(gradient_accumulation, run).status is Status.SKIP


def test_is_unknown_without_its_counts() -> None:
    assert compute_check(gradient_accumulation, _run(measures={})).status is Status.UNKNOWN


def test_end_of_a_training_is_stated() -> None:
    raised = compute_check(gradient_accumulation, _run(outcome="raised", error_type="E", error_message="no")).findings
    assert raised[0].finding.observed.startswith("keras 3.15.1 cannot accumulate gradients over replicas: E in")
    died = compute_check(gradient_accumulation, _run(outcome="died", signal="SIGSEGV", phase="train")).findings
    assert died[0].finding.observed == "terminated by SIGSEGV in phase train"
