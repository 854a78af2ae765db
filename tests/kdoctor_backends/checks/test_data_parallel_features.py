from typing import Any

from helpers.comparison_checks import comparisons
from helpers.facts import smoke_case, smoke_run
from helpers.optimizer_states import STATE as MEASURES
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import SmokeRun
from kdoctor.model import Action, Severity
from kdoctor_backends.scenarios import ON_JAX

SCENARIO = next(scenario for scenario in ON_JAX if scenario.id == "smoke.data-parallel-features")
HEALTHY: dict[str, float | None] = {
    **MEASURES,
    "reference_way": 0.05,
    "longest_way": 0.06,
    "masks": 2.0,
    "equal_masks": 0.0,
    "repeated_masks": 2.0,
    "loss_scale": 32768.0,
    "variables_float32": 6.0,
}


def ran(name: str, **changes: Any) -> SmokeRun:
    cases = (smoke_case(one, 2, **{"measures": HEALTHY, **(changes if one == name else {})}) for one in SCENARIO.cases)
    return smoke_run(SCENARIO.id, 2, *cases, tensorflow=None, jax="0.10.2")


def measured(name: str, **changes: float) -> SmokeRun:
    return ran(name, measures={**HEALTHY, **changes})


def without(name: str, *missing: str) -> SmokeRun:
    return ran(name, measures={key: value for key, value in HEALTHY.items() if key not in missing})


WRONG = {
    "clipvalue": {"reference_way": 0.2},
    "muon": {"mirrored_state": 8.0},
    "ema": {"state_deviation": 0.1},
    "metrics": {"metric auc": 0.7, "reference auc": 0.8},
    "dropout": {"equal_masks": 1.0},
    "random-layers": {"repeated_masks": 1.0},
    "float16": {"loss_scale": 0.5},
}

test_data_parallel_features = table(
    SCENARIO.id,
    Severity.WARNING,
    *comparisons(SCENARIO.id, SCENARIO.cases, HEALTHY),
    *(
        fails(measured(name, **changes), of=[f"training {name}"], action=Action.CHANGE_CODE, look=())
        for name, changes in WRONG.items()
    ),
    # Weights that did not move are unknown.
    *(unknown(measured(name, moved=1e-6)) for name in ("regularizers", "steps-per-execution", "float16")),
    unknown(without("dropout", "masks")),
    unknown(without("bfloat16", "variables_float32")),
    unknown(without("clipnorm", "longest_way")),
    passes(without("metrics", "masks", "equal_masks", "repeated_masks")),
    passes(ran("metrics"), "step 0.01 s; equal masks on 2 devices in 0 of 2 steps"),
    unknown(ran("dropout", weight_deviation=None)),
    # Half precision may differ more, its losses by a tenth.
    passes(ran("bfloat16", weight_deviation=8e-4)),
    fails(ran("metrics", weight_deviation=8e-4)),
    passes(ran("bfloat16", reference_losses=(1.0, 0.545))),
    fails(ran("bfloat16", reference_losses=(1.0, 0.56))),
)
