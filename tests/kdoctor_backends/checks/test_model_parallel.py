from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Severity

CASES = ("model-axis", "data-and-model")
MEASURED = {"to be sharded": 3.0, "optimizer variables": 4.0, "optimizer sharded": 3.0, "largest share": 0.505}
ABSENT = {"outcome": "skipped", "skip_reason": "JAX is not installed here"}


def weights(**changes: Any) -> Weights:
    """Three sharded variables, and one that is replicated on each device."""
    values: dict[str, Any] = {"variables": 4, "mirrored": 1, "sharded": 3, "nonfinite": (), "replicas_agree": True}
    return Weights(**{**values, **changes})


def ran(**first: Any) -> SmokeRun:
    good: dict[str, Any] = {"weights": weights(), "measures": MEASURED}
    cases = (smoke_case(CASES[0], 2, **{**good, **first}), smoke_case(CASES[1], 4, **good))
    return smoke_run("smoke.model-parallel", 2, *cases, tensorflow=None, jax="0.10.2")


def without(measure: str) -> SmokeRun:
    return ran(measures={name: value for name, value in MEASURED.items() if name != measure})


test_model_parallel = table(
    "smoke.model-parallel",
    Severity.ERROR,
    passes(ran(), "axis: sharded, 50% of the weights' bytes"),
    passes(without("largest share"), "axis: sharded, Mirrored"),
    unknown(without("to be sharded"), "the placement of its variables is not known"),
    unknown(without("optimizer sharded"), "the placement of its variables is not known"),
    fails(ran(weights=weights(mirrored=4, sharded=0)), "0 of 3 variables"),
    fails(ran(measures={**MEASURED, "optimizer sharded": 0.0}), "optimizer's state of 0 of 3"),
    fails(ran(weights=weights(mirrored=0)), "1 of 4 variables"),
    fails(ran(weight_deviation=0.2), "axis: weights differ by up to 0.2, "),
    fails(ran(losses=(1.0, 0.7)), "1, 0.7"),
    fails(ran(weights=weights(replicas_agree=False)), "different weights"),
    fails(ran(weights=weights(nonfinite=("out/bias",))), "out/bias"),
    fails(ran(outcome="raised", error_type="TypeError", error_message="no"), "TypeError in phase inspect: no"),
    unknown(ran(weights=None)),
    unknown(ran(measures={})),
    unknown(ran(weight_deviation=None)),
    skips(smoke_run("smoke.model-parallel", 1, *(smoke_case(name, 1) for name in CASES), jax="0.10.2")),
    skips(smoke_run("smoke.model-parallel", 2, *(smoke_case(name, 2, **ABSENT) for name in CASES))),
)
