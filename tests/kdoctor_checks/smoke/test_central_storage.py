from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.central_storage import central_storage

CENTRAL = Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)


def _run(fit: dict[str, Any] | None = None, loop: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
    cases = [
        smoke_case(name, replicas, **{"weights": CENTRAL, **(changes or {})})
        for name, changes in (("fit", fit), ("custom-loop", loop))
    ]
    return smoke_run("smoke.central-storage", replicas, *cases)


def test_variables_need_not_be_mirrored() -> None:
    assert compute_check(central_storage, _run()).status is Status.PASS


def test_incorrect_losses_are_a_warning() -> None:
    """The result of Keras 3.15.1: correct weights and incorrect losses."""
    result = compute_check(central_storage, _run({"losses": (1.1, 0.6)}))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert "CentralStorageStrategy" in result.findings[0].finding.observed
    assert "1.1, 0.6 instead of 1, 0.5" in result.findings[0].finding.observed


def test_fit_that_raises_is_not_supported() -> None:
    raised = {"outcome": "raised", "error_type": "ValueError", "error_message": "no", "phase": "train"}
    (found,) = compute_check(central_storage, _run(raised)).findings
    assert found.finding.observed == (
        "keras 3.15.1 cannot fit under CentralStorageStrategy: ValueError in phase train: no"
    )


def test_different_weights_of_a_custom_loop_are_a_warning() -> None:
    result = compute_check(central_storage, _run(loop={"weight_deviation": 0.1}))
    assert result.findings[0].finding.subject == "training custom-loop"
    assert "0.1" in result.findings[0].finding.observed


def test_is_unknown_without_its_weights_and_skipped_on_one_replica() -> None:
    assert compute_check(central_storage, _run(loop={"weights": None})).status is Status.UNKNOWN
    assert compute_check(central_storage, _run(replicas=1)).status is Status.SKIP
