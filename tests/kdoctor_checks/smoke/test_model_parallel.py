from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor_checks.smoke.model_parallel import model_parallel

CASES = ("model-axis", "data-and-model")
MEASURED = {"to be sharded": 3.0, "optimizer variables": 4.0, "optimizer sharded": 3.0, "largest share": 0.505}


def weights(**changes: Any) -> Weights:
    """Three variables cut up and one that is whole on each device."""
    values: dict[str, Any] = {
        "variables": 4,
        "mirrored": 1,
        "sharded": 3,
        "nonfinite": (),
        "replicas_agree": True,
    }
    return Weights(**{**values, **changes})


def _run(replicas: int = 2, **first: Any) -> SmokeRun:
    good: dict[str, Any] = {"weights": weights(), "measures": MEASURED}
    cases = (smoke_case(CASES[0], replicas, **{**good, **first}), smoke_case(CASES[1], 2 * replicas, **good))
    return smoke_run("smoke.model-parallel", replicas, *cases, tensorflow=None, jax="0.10.2")


def test_passes_where_every_device_holds_its_share() -> None:
    result = compute_check(model_parallel, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("cut up, 50% of the weights' bytes on the fullest device; ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": weights(mirrored=4, sharded=0)}, "0 of 3 variables that the layout cuts are held in shares"),
        ({"measures": {**MEASURED, "optimizer sharded": 0.0}}, "what the optimizer keeps for 0 of 3 cut variables"),
        ({"weights": weights(mirrored=0)}, "1 of 4 variables are neither whole nor in shares on every device"),
        ({"weight_deviation": 0.2}, "weights differ by up to 0.2"),
        ({"losses": (1.0, 0.7)}, "it reports losses of 1, 0.7"),
        ({"weights": weights(replicas_agree=False)}, "the replicas hold different weights"),
        ({"weights": weights(nonfinite=("out/bias",))}, "NaN or infinity in out/bias"),
        ({"outcome": "raised", "error_type": "TypeError", "error_message": "no"}, "TypeError in phase inspect: no"),
    ],
)
def test_fails_where_one_does_not(changes: dict[str, Any], words: str) -> None:
    result = compute_check(model_parallel, _run(**changes))
    assert result.status is Status.FAIL
    assert words in result.findings[0].finding.observed


@pytest.mark.parametrize("changes", [{"weights": None}, {"measures": {}}, {"weight_deviation": None}])
def test_is_unknown_without_what_was_to_be_seen(changes: dict[str, Any]) -> None:
    assert compute_check(model_parallel, _run(**changes)).status is Status.UNKNOWN


def test_says_nothing_of_one_device_or_without_jax() -> None:
    one = smoke_run("smoke.model-parallel", 1, *(smoke_case(name, 1) for name in CASES), jax="0.10.2")
    assert compute_check(model_parallel, one).status is Status.SKIP
    absent = {"outcome": "skipped", "skip_reason": "JAX is not installed here"}
    without = smoke_run("smoke.model-parallel", 2, *(smoke_case(name, 2, **absent) for name in CASES))
    assert compute_check(model_parallel, without).status is Status.SKIP
