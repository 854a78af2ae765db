from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.multi_worker_fit import multi_worker_fit


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.multi-worker", 2, smoke_case("fit", 2, **changes))


def test_passes_where_fit_equals_one_device() -> None:
    assert compute_check(multi_worker_fit, _run()).status is Status.PASS


def test_warns_that_keras_cannot_with_the_way_out() -> None:
    run = _run(outcome="raised", error_type="ValueError", error_message="Attempt to convert a value", phase="train")
    result = compute_check(multi_worker_fit, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    finding = result.findings[0].finding
    assert finding.observed == (
        "keras 3.15.1 cannot fit under MultiWorkerMirroredStrategy: ValueError in phase train: "
        "Attempt to convert a value"
    )
    for way in ("tf_keras", "custom training loop", "JAX"):
        assert way in finding.remedy.summary


@pytest.mark.parametrize("changes", [{"weight_deviation": 0.1}, {"losses": (1.0, 0.9)}, {"reference_losses": ()}])
def test_warns_of_a_training_that_is_not_one_devices(changes: dict[str, Any]) -> None:
    result = compute_check(multi_worker_fit, _run(**changes))
    assert "trains under MultiWorkerMirroredStrategy, but not rightly" in result.findings[0].finding.observed


def test_is_unknown_without_the_case() -> None:
    other = smoke_run("smoke.multi-worker", 2, smoke_case("custom-loop", 2))
    assert compute_check(multi_worker_fit, other).status is Status.UNKNOWN


def test_quotes_the_end_of_a_message_that_shows_a_value_first() -> None:
    message = "worker 0: ValueError in phase data: Attempt to convert a value (PerReplica:{\n  0: 1.0\n}) with no type."
    run = _run(outcome="raised", error_type="WorkerFailed", error_message=message, phase="data")
    observed = compute_check(multi_worker_fit, run).findings[0].finding.observed
    assert observed.endswith("Attempt to convert a value (PerReplica:{ ... }) with no type.")
