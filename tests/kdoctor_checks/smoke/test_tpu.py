from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.tpu import tpu


def _run(**changes: Any) -> SmokeRun:
    return smoke_run("smoke.tpu", 8, smoke_case("custom-loop", 8, **changes))


def test_weights_close_to_the_cpu_pass() -> None:
    assert compute_check(tpu, _run(weight_deviation=0.01)).status is Status.PASS


def test_weights_far_from_the_cpu_fail() -> None:
    assert compute_check(tpu, _run(weight_deviation=0.03)).status is Status.FAIL


def test_is_skipped_without_a_tpu() -> None:
    result = compute_check(tpu, _run(outcome="skipped", skip_reason="TensorFlow finds no TPU here"))
    assert (result.status, result.reason) == (Status.SKIP, "training custom-loop: TensorFlow finds no TPU here")


def test_is_unknown_without_a_comparison() -> None:
    assert compute_check(tpu, _run(weight_deviation=None)).status is Status.UNKNOWN


def test_variables_need_not_be_mirrored() -> None:
    whole = Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)
    assert compute_check(tpu, _run(weights=whole)).status is Status.PASS
