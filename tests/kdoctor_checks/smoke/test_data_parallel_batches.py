from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.data_parallel_batches import data_parallel_batches

REFUSED: dict[str, Any] = {
    "outcome": "raised",
    "error_type": "IndivisibleError",
    "error_message": "should evenly divide the shape",
}


def _run(tail: dict[str, Any] | None = None, batch: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
    return smoke_run(
        "smoke.data-parallel-batches",
        replicas,
        smoke_case("uneven-tail", replicas, final_batch=3, **(tail or {})),
        smoke_case("uneven-batch", replicas, global_batch=17, **(batch or {})),
        tensorflow=None,
        jax="0.10.2",
    )


def test_passes_if_both_match_one_device() -> None:
    assert compute_check(data_parallel_batches, _run()).status is Status.PASS


def test_batches_that_jax_refuses_are_a_warning() -> None:
    result = compute_check(data_parallel_batches, _run({**REFUSED, "phase": "step 6"}, {**REFUSED, "phase": "data"}))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    first, second = (item.finding.observed for item in result.findings)
    assert "IndivisibleError in step 6" in first
    assert "final batch of 3 over 2 devices" in first
    assert "IndivisibleError in phase data" in second
    assert "batch of 17 over 2 devices" in second
    assert "drop_remainder=True" in result.findings[0].finding.remedy.summary


def test_different_weights_are_a_warning() -> None:
    result = compute_check(data_parallel_batches, _run({"weight_deviation": 0.07}))
    assert result.status is Status.FAIL
    assert "0.07" in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_device_or_without_jax() -> None:
    assert compute_check(data_parallel_batches, _run({"weights": None})).status is Status.UNKNOWN
    assert compute_check(data_parallel_batches, _run(replicas=1)).status is Status.SKIP
    absent = {"outcome": "skipped", "skip_reason": "JAX is not installed here"}
    result = compute_check(data_parallel_batches, _run(absent, absent))
    assert result.status is Status.SKIP
    assert "JAX is not installed" in (result.reason or "")
