from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.data_parallel_batches import data_parallel_batches

FITTED = ("uneven-tail", "uneven-batch", "drop-remainder")
INFERRED = ("evaluate", "predict", "validation", "padded")
REFUSED: dict[str, Any] = {
    "outcome": "raised",
    "error_type": "IndivisibleError",
    "error_message": "should evenly divide the shape",
}
EQUAL: dict[str, Any] = {"measures": {"difference": 1e-7}, "weights": None, "losses": ()}


def _run(changes: dict[str, Any] | None = None, replicas: int = 2, **more: dict[str, Any]) -> SmokeRun:
    changes = {**(changes or {}), **more}
    shown = {name.replace("_", "-"): values for name, values in changes.items()}
    return smoke_run(
        "smoke.data-parallel-batches",
        replicas,
        *(smoke_case(name, replicas, final_batch=3, global_batch=17, **shown.get(name, {})) for name in FITTED),
        *(smoke_case(name, replicas, final_batch=3, **{**EQUAL, **shown.get(name, {})}) for name in INFERRED),
        tensorflow=None,
        jax="0.10.2",
    )


def test_passes_if_all_match_one_device() -> None:
    assert compute_check(data_parallel_batches, _run()).status is Status.PASS


def test_batches_that_jax_refuses_are_a_warning() -> None:
    run = _run(uneven_tail={**REFUSED, "phase": "step 6"}, uneven_batch={**REFUSED, "phase": "data"})
    result = compute_check(data_parallel_batches, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    first, second = (item.finding.observed for item in result.findings)
    assert "IndivisibleError in step 6" in first
    assert "final batch of 3 over 2 devices" in first
    assert "IndivisibleError in phase data" in second
    assert "batch of 17 over 2 devices" in second
    assert "drop_remainder=True" in result.findings[0].finding.remedy.summary


@pytest.mark.parametrize("name", ["evaluate", "predict", "validation"])
@pytest.mark.parametrize("left", [0.0, 1.0])
def test_refused_inference_names_the_batch_and_lost_weights(name: str, left: float) -> None:
    refused = {**REFUSED, "phase": name, "measures": {"weights left": left}}
    (item,) = compute_check(data_parallel_batches, _run({name: refused})).findings
    assert item.finding.subject == f"training {name}"
    assert "final batch of 3 over 2 devices" in item.finding.observed
    assert ("lost its weights" in item.finding.observed) is (left == 0.0)
    assert item.finding.remedy.look == ("kdoctor explain --reproduce jax-evaluate",)


@pytest.mark.parametrize("name", ["drop_remainder", "padded"])
def test_alternative_that_raises_is_a_failure_of_its_own(name: str) -> None:
    (item,) = compute_check(data_parallel_batches, _run({name: {**REFUSED, "phase": "train"}})).findings
    assert item.finding.subject == f"training {name.replace('_', '-')}"
    assert item.finding.expected == "it trains on 2 devices"


def test_results_that_differ_are_a_warning() -> None:
    result = compute_check(data_parallel_batches, _run(padded={"measures": {"difference": 0.4}}))
    assert (result.status, len(result.findings)) == (Status.FAIL, 1)
    assert "0.4" in result.findings[0].finding.observed


def test_different_weights_are_a_warning() -> None:
    result = compute_check(data_parallel_batches, _run(uneven_tail={"weight_deviation": 0.07}))
    assert result.status is Status.FAIL
    assert "0.07" in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_device_or_without_jax() -> None:
    assert compute_check(data_parallel_batches, _run(uneven_tail={"weights": None})).status is Status.UNKNOWN
    assert compute_check(data_parallel_batches, _run(predict={"measures": {}})).status is Status.UNKNOWN
    assert compute_check(data_parallel_batches, _run(replicas=1)).status is Status.SKIP
    absent = {"outcome": "skipped", "skip_reason": "JAX is not installed here"}
    names = [name.replace("-", "_") for name in (*FITTED, *INFERRED)]
    result = compute_check(data_parallel_batches, _run(dict.fromkeys(names, absent)))
    assert result.status is Status.SKIP
    assert "JAX is not installed" in (result.reason or "")


@pytest.mark.parametrize(("name", "expected"), [("uneven_tail", "it trains"), ("predict", "it runs as on one device")])
def test_refused_batch_states_what_should_happen(name: str, expected: str) -> None:
    (item,) = compute_check(data_parallel_batches, _run({name: {**REFUSED, "phase": "data"}})).findings
    assert item.finding.expected == expected
