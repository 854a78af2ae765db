from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.multi_worker_fit import multi_worker_fit


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.multi-worker", 2, smoke_case("fit", 2, **changes))


def test_passes_if_fit_matches_one_device() -> None:
    assert compute_check(multi_worker_fit, _run()).status is Status.PASS


def test_unsupported_fit_is_a_warning_with_alternatives() -> None:
    run = _run(outcome="raised", error_type="ValueError", error_message="Attempt to convert a value", phase="train")
    result = compute_check(multi_worker_fit, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    finding = result.findings[0].finding
    for part in (
        "keras 3.15.1",
        "MultiWorkerMirroredStrategy",
        "ValueError in phase train: Attempt to convert a value",
    ):
        assert part in finding.observed
    for alternative in ("tf_keras", "custom training loop", "JAX"):
        assert alternative in finding.remedy.summary


@pytest.mark.parametrize("changes", [{"weight_deviation": 0.1}, {"losses": (1.0, 0.9)}, {"reference_losses": ()}])
def test_training_that_differs_from_one_device_is_a_warning(changes: dict[str, Any]) -> None:
    result = compute_check(multi_worker_fit, _run(**changes))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert "MultiWorkerMirroredStrategy" in result.findings[0].finding.observed


def test_is_unknown_without_the_case() -> None:
    other = smoke_run("smoke.multi-worker", 2, smoke_case("custom-loop", 2))
    assert compute_check(multi_worker_fit, other).status is Status.UNKNOWN


def test_message_with_a_value_is_shortened() -> None:
    message = "worker 0: ValueError in phase data: Attempt to convert a value (PerReplica:{\n  0: 1.0\n}) with no type."
    run = _run(outcome="raised", error_type="WorkerFailed", error_message=message, phase="data")
    observed = compute_check(multi_worker_fit, run).findings[0].finding.observed
    assert observed.endswith("Attempt to convert a value (PerReplica:{ ... }) with no type.")
