from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.ragged_first_batch import ragged_first_batch

NAN = Weights(variables=6, mirrored=6, nonfinite=("out/bias",), replicas_agree=True)


def _run(uneven: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
    cases = (
        smoke_case("fewer-than-replicas", replicas, final_batch=1),
        smoke_case("first-batch-uneven", replicas, final_batch=33, **(uneven or {})),
    )
    return smoke_run("smoke.odd-batches", replicas, *cases)


def test_passes_if_both_train() -> None:
    """The result of Keras 2."""
    assert compute_check(ragged_first_batch, _run()).status is Status.PASS


def test_error_of_keras_3_is_a_warning() -> None:
    raised = {"outcome": "raised", "error_type": "InvalidArgumentError", "error_message": "AddN", "phase": "train"}
    result = compute_check(ragged_first_batch, _run(raised))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    for part in ("33 over 2 replicas", "InvalidArgumentError in phase train: AddN"):
        assert part in result.findings[0].finding.observed
    assert "drop_remainder=True" in result.findings[0].finding.remedy.summary


def test_nan_is_a_warning() -> None:
    assert compute_check(ragged_first_batch, _run({"weights": NAN})).status is Status.FAIL
    assert compute_check(ragged_first_batch, _run({"losses": (None, None)})).status is Status.FAIL


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(ragged_first_batch, _run({"weights": None})).status is Status.UNKNOWN
    assert compute_check(ragged_first_batch, _run(replicas=1)).status is Status.SKIP
