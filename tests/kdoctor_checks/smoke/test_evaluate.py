from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.evaluate import evaluate
from kdoctor_checks.smoke.predict_on_batch import predict_on_batch
from kdoctor_checks.smoke.ragged_evaluation import ragged_evaluation

VALUES = {"metric loss (uneven)": 1.25, "reference loss (uneven)": 1.25}
COUNTS = {"examples": 67.0, "predictions": 67.0, "in_order": 67.0}
RAISED = {"outcome": "raised", "error_type": "InvalidArgumentError", "error_message": "AddN", "phase": "train"}


def _run(replicas: int = 2, **changed: dict[str, Any]) -> SmokeRun:
    measures = {"predict": COUNTS, "predict-on-batch": COUNTS}
    names = ("evaluate", "predict", "validation", "predict-on-batch", "first-batch-uneven")
    cases = (
        smoke_case(
            name, replicas, **{"measures": measures.get(name, VALUES), **changed.get(name.replace("-", "_"), {})}
        )
        for name in names
    )
    return smoke_run("smoke.evaluate", replicas, *cases)


def test_all_pass_with_keras_2() -> None:
    for check in (evaluate, predict_on_batch, ragged_evaluation):
        assert compute_check(check, _run()).status is Status.PASS
        assert compute_check(check, _run(replicas=1)).status is Status.SKIP


@pytest.mark.parametrize("case", ["evaluate", "validation"])
def test_wrong_loss_is_an_error(case: str) -> None:
    changed: dict[str, Any] = {case: {"measures": {**VALUES, "metric loss (uneven)": 1.0}}}
    result = compute_check(evaluate, _run(**changed))
    (found,) = [item.finding for item in result.findings]
    assert (result.severity, found.subject) == (Severity.ERROR, f"training {case}")
    assert "loss (uneven) is 1 instead of 1.25" in found.observed


@pytest.mark.parametrize("wrong", [{"predictions": 64.0, "in_order": 64.0}, {"in_order": 2.0}])
def test_missing_or_reordered_predictions_are_an_error(wrong: dict[str, float]) -> None:
    result = compute_check(evaluate, _run(predict={"measures": {**COUNTS, **wrong}}))
    assert [item.finding.subject for item in result.findings] == ["training predict"]


def test_predictions_of_every_replica_are_a_warning() -> None:
    twice = {"examples": 16.0, "predictions": 32.0, "in_order": 16.0}
    result = compute_check(predict_on_batch, _run(predict_on_batch={"measures": twice}))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert "32 predictions for 16 examples" in result.findings[0].finding.observed


def test_error_of_keras_3_is_a_warning() -> None:
    result = compute_check(ragged_evaluation, _run(first_batch_uneven=RAISED))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert "InvalidArgumentError" in result.findings[0].finding.observed
    assert "validation_batch_size" in result.findings[0].finding.remedy.summary


def test_another_end_has_no_advice_about_batches() -> None:
    result = compute_check(ragged_evaluation, _run(first_batch_uneven={**RAISED, "error_type": "KeyError"}))
    assert "validation_batch_size" not in result.findings[0].finding.remedy.summary


def test_is_unknown_without_evidence() -> None:
    empty: dict[str, Any] = {"measures": {}}
    run = _run(evaluate=empty, predict=empty, validation=empty, predict_on_batch=empty, first_batch_uneven=empty)
    for check in (evaluate, predict_on_batch, ragged_evaluation):
        assert compute_check(check, run).status is Status.UNKNOWN
