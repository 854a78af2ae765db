from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.uneven_final_batch import uneven_final_batch

NAN = Weights(variables=6, mirrored=6, nonfinite=("normalise/gamma",), replicas_agree=True)


def _run(fed: dict[str, Any] | None = None, guarded: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
    fed_case = smoke_case("fed-tail", replicas, **{"final_batch": 3, "weight_deviation": 0.046, **(fed or {})})
    guarded_case = smoke_case("guarded", replicas, **(guarded or {}))
    return smoke_run("smoke.uneven-final-batch", replicas, fed_case, guarded_case)


def _only_observed(result: Result) -> tuple[str, str]:
    assert result.status is Status.FAIL, result
    (judged,) = result.findings
    return judged.finding.subject, judged.finding.observed


def test_passes_with_the_deviation_as_evidence() -> None:
    result = compute_check(uneven_final_batch, _run())
    assert result.status is Status.PASS
    assert "3 over 2 replicas" in result.evidence[0].observed
    assert "0.046" in result.evidence[0].observed


@pytest.mark.parametrize("name", ["fed", "guarded"])
def test_nan_weights_fail(name: str) -> None:
    nan = {"weights": NAN, "weight_deviation": None}
    run = _run(fed=nan) if name == "fed" else _run(guarded=nan)
    subject, observed = _only_observed(compute_check(uneven_final_batch, run))
    assert subject == {"fed": "training fed-tail", "guarded": "training guarded"}[name]
    assert "normalise/gamma" in observed


def test_nan_loss_fails() -> None:
    _, observed = _only_observed(compute_check(uneven_final_batch, _run(fed={"losses": (1.0, None)})))
    assert "3 over 2 replicas" in observed
    assert "1, not finite" in observed


def test_dropped_batch_with_different_weights_fails() -> None:
    subject, observed = _only_observed(compute_check(uneven_final_batch, _run(guarded={"weight_deviation": 0.01})))
    assert subject == "training guarded"
    assert "0.01" in observed


def test_error_fails() -> None:
    fed = {"outcome": "raised", "error_type": "InvalidArgumentError", "error_message": "AddN", "phase": "train"}
    assert _only_observed(compute_check(uneven_final_batch, _run(fed=fed))) == (
        "training fed-tail",
        "InvalidArgumentError in phase train: AddN",
    )


def test_is_unknown_without_a_case_or_its_evidence() -> None:
    assert compute_check(uneven_final_batch, _run(guarded={"weight_deviation": None})).status is Status.UNKNOWN
    assert compute_check(uneven_final_batch, _run(fed={"weights": None})).status is Status.UNKNOWN
    lone = smoke_run("smoke.uneven-final-batch", 2, smoke_case("fed-tail", 2), failure="the child died")
    result = compute_check(uneven_final_batch, lone)
    assert (result.status, result.reason) == (Status.UNKNOWN, "training guarded: the child died")


def test_is_skipped_on_one_replica() -> None:
    assert compute_check(uneven_final_batch, _run(replicas=1)).status is Status.SKIP


def test_is_unknown_if_fewer_replicas_were_made() -> None:
    run = smoke_run("smoke.uneven-final-batch", 2, smoke_case("fed-tail", 1), smoke_case("guarded", 1))
    result = compute_check(uneven_final_batch, run)
    assert result.status is Status.UNKNOWN
    assert "1 of 2 replicas" in (result.reason or "")


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        ({}, "with keras 3.15.1 and TensorFlow 2.21.0: "),
        ({"keras": None, "tensorflow": None}, "with this Keras and TensorFlow: "),
    ],
    ids=["known", "unknown"],
)
def test_versions_to_replace_are_named_if_they_are_known(versions: dict[str, Any], named: str) -> None:
    (judged,) = compute_check(uneven_final_batch, replace(_run(fed={"weights": NAN}), **versions)).findings
    assert named in judged.finding.remedy.summary
