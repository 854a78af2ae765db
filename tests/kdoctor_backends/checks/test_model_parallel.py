from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.model_parallel import model_parallel

CASES = ("model-axis", "data-and-model")
MEASURED = {"to be sharded": 3.0, "optimizer variables": 4.0, "optimizer sharded": 3.0, "largest share": 0.505}


def weights(**changes: Any) -> Weights:
    """Three sharded variables, and one that is replicated on each device."""
    values: dict[str, Any] = {"variables": 4, "mirrored": 1, "sharded": 3, "nonfinite": (), "replicas_agree": True}
    return Weights(**{**values, **changes})


def _run(replicas: int = 2, **first: Any) -> SmokeRun:
    good: dict[str, Any] = {"weights": weights(), "measures": MEASURED}
    cases = (smoke_case(CASES[0], replicas, **{**good, **first}), smoke_case(CASES[1], 2 * replicas, **good))
    return smoke_run("smoke.model-parallel", replicas, *cases, tensorflow=None, jax="0.10.2")


def test_passes_if_every_device_holds_its_shard() -> None:
    result = compute_check(model_parallel, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("sharded, 50% of the weights' bytes")


def test_share_of_the_fullest_device_is_stated_if_it_was_read() -> None:
    unread = {name: value for name, value in MEASURED.items() if name != "largest share"}
    assert compute_check(model_parallel, _run(measures=unread)).evidence[0].observed.startswith("sharded, Mirrored")


@pytest.mark.parametrize("measure", ["to be sharded", "optimizer sharded"])
def test_placement_that_was_not_read_is_unknown(measure: str) -> None:
    unread = {name: value for name, value in MEASURED.items() if name != measure}
    assert "placement" in (compute_check(model_parallel, _run(measures=unread)).reason or "")


@cases(
    ({"weights": weights(mirrored=4, sharded=0)}, "0 of 3 variables"),
    ({"measures": {**MEASURED, "optimizer sharded": 0.0}}, "optimizer's state of 0 of 3"),
    ({"weights": weights(mirrored=0)}, "1 of 4 variables"),
    ({"weight_deviation": 0.2}, "0.2"),
    ({"losses": (1.0, 0.7)}, "1, 0.7"),
    ({"weights": weights(replicas_agree=False)}, "different weights"),
    ({"weights": weights(nonfinite=("out/bias",))}, "out/bias"),
    ({"outcome": "raised", "error_type": "TypeError", "error_message": "no"}, "TypeError in phase inspect: no"),
)
def test_unsharded_or_incorrect_models_fail(changes: dict[str, Any], decisive: str) -> None:
    result = compute_check(model_parallel, _run(**changes))
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


@pytest.mark.parametrize("changes", [{"weights": None}, {"measures": {}}, {"weight_deviation": None}])
def test_is_unknown_without_evidence(changes: dict[str, Any]) -> None:
    assert compute_check(model_parallel, _run(**changes)).status is Status.UNKNOWN


def test_is_skipped_on_one_device_or_without_jax() -> None:
    one = smoke_run("smoke.model-parallel", 1, *(smoke_case(name, 1) for name in CASES), jax="0.10.2")
    assert compute_check(model_parallel, one).status is Status.SKIP
    absent = {"outcome": "skipped", "skip_reason": "JAX is not installed here"}
    without = smoke_run("smoke.model-parallel", 2, *(smoke_case(name, 2, **absent) for name in CASES))
    assert compute_check(model_parallel, without).status is Status.SKIP
