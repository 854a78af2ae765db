from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.model_outside_scope import model_outside_scope

PLAIN = Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)


def _run(inside: dict[str, Any] | None = None, outside: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
    refusal = {"outcome": "raised", "error_type": "AssertionError", "error_message": "", "phase": "train"}
    return smoke_run(
        "smoke.model-outside-scope",
        replicas,
        smoke_case("compile-inside", replicas, **{**refusal, **(inside or {})}),
        smoke_case("all-outside", replicas, **{"weights": PLAIN, **(outside or {})}),
    )


def _only_finding(result: Result) -> tuple[str, str]:
    assert result.status is Status.FAIL, result
    (judged,) = result.findings
    return judged.finding.subject, judged.finding.observed


def test_passes_if_one_is_refused_and_the_other_detected() -> None:
    result = compute_check(model_outside_scope, _run())
    assert result.status is Status.PASS
    refused, detected = (evidence.observed for evidence in result.evidence)
    assert "AssertionError in phase train" in refused
    assert "0 of 4 variables" in detected


@pytest.mark.parametrize("error", ["RuntimeError", "ValueError", "AttributeError"])
def test_passes_with_each_known_refusal(error: str) -> None:
    assert compute_check(model_outside_scope, _run({"error_type": error})).status is Status.PASS


def test_fails_if_training_raises_no_error() -> None:
    subject, observed = _only_finding(compute_check(model_outside_scope, _run({"outcome": "trained"})))
    assert subject == "training compile-inside"
    assert "2 replicas" in observed


@pytest.mark.parametrize(
    "inside",
    [
        {"error_type": "ResourceExhaustedError"},
        {"phase": "strategy"},
        {"outcome": "died", "signal": "SIGABRT"},
        {"outcome": "timed-out"},
    ],
)
def test_other_errors_fail(inside: dict[str, Any]) -> None:
    subject, _ = _only_finding(compute_check(model_outside_scope, _run(inside)))
    assert subject == "training compile-inside"


def test_mirrored_model_outside_the_scope_fails() -> None:
    weights = Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=True)
    subject, observed = _only_finding(compute_check(model_outside_scope, _run(outside={"weights": weights})))
    assert subject == "training all-outside"
    assert "4 of 4 variables" in observed


def test_passes_if_all_outside_is_refused_too() -> None:
    outside = {"outcome": "raised", "error_type": "RuntimeError", "error_message": "use a scope", "phase": "train"}
    assert compute_check(model_outside_scope, _run(outside=outside)).status is Status.PASS


def test_is_unknown_without_evidence() -> None:
    assert compute_check(model_outside_scope, _run(outside={"weights": None})).status is Status.UNKNOWN
    lone = smoke_run("smoke.model-outside-scope", 2, smoke_case("all-outside", 2, weights=PLAIN))
    assert compute_check(model_outside_scope, lone).status is Status.UNKNOWN


def test_is_skipped_on_one_replica() -> None:
    assert compute_check(model_outside_scope, _run(replicas=1)).status is Status.SKIP


def test_other_error_counts_although_fewer_replicas_were_made() -> None:
    cases = [
        smoke_case("compile-inside", 1, outcome="raised", error_type="MemoryError", phase="train"),
        smoke_case("all-outside", 2, weights=PLAIN),
    ]
    result = compute_check(model_outside_scope, smoke_run("smoke.model-outside-scope", 2, *cases))
    assert [item.finding.subject for item in result.findings] == ["training compile-inside"]
