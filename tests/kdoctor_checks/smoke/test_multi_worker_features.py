from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.optimizer_states import STATE as MEASURES
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Severity
from kdoctor.smoke.builtin import SCENARIOS

SCENARIO = next(scenario for scenario in SCENARIOS if scenario.id == "smoke.multi-worker-features")
HEALTHY: dict[str, float | None] = {
    **MEASURES,
    "reference_way": 0.03,
    "longest_way": 0.06,
    "masks": 3.0,
    "equal_masks": 0.0,
    "repeated_masks": 3.0,
    "metric mae": 0.75,
    "reference mae": 0.75,
    "metric top_2": 0.75,
    "reference top_2": 0.75,
    "metric f1": 0.5,
    "reference f1": 0.5,
}


def _workers(deviation: float = 0.0) -> tuple[SmokeWorker, ...]:
    return tuple(
        SmokeWorker(name=f"worker {number}", outcome="trained", losses=(1.0, 0.5), weight_deviation=number * deviation)
        for number in range(2)
    )


def ran(name: str = "", **changes: Any) -> SmokeRun:
    healthy = {"measures": HEALTHY, "workers": _workers()}
    cases = (smoke_case(one, 2, **{**healthy, **(changes if one == name else {})}) for one in SCENARIO.cases)
    return smoke_run(SCENARIO.id, 2, *cases)


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("global-clipnorm", {"weight_deviation": 0.022}, "0.022"),
    ("clip-after-reduction", {"measures": {**HEALTHY, "reference_way": 0.3}}, "0.3"),
    ("adam-built-in-scope", {"measures": {**HEALTHY, "metric mae": 1.5}}, "1.5 instead of 0.75"),
    ("adam-built-in-scope", {"workers": _workers(0.4)}, "on worker 1, weights differ by up to 0.4"),
    ("adam-built-late", {"measures": {**HEALTHY, "state_deviation": 0.5}}, "0.5"),
    ("nesterov", {"weight_deviation": 0.05}, "0.05"),
    ("amsgrad", {"measures": {**HEALTHY, "mirrored_state": 0.0}}, "0 of"),
    ("centered-rmsprop", {"measures": {**HEALTHY, "state_deviation": 0.5}}, "0.5"),
    ("metrics-of-classes", {"measures": {**HEALTHY, "metric f1": 1.0}}, "f1 is 1 instead of 0.5"),
    ("metrics-of-classes", {"workers": _workers(0.4)}, "on worker 1, weights differ by up to 0.4"),
    ("adam-built-late", {"outcome": "raised", "error_message": "worker 0: feed a placeholder"}, "worker 0"),
    ("dropout", {"measures": {**HEALTHY, "equal_masks": 3.0}}, "3 of 3 steps"),
    ("dropout-per-replica", {"measures": {**HEALTHY, "repeated_masks": 1.0}}, "1 of 3 steps"),
)
LOOK = "kdoctor explain --reproduce "

test_multi_worker_features = table(
    SCENARIO.id,
    Severity.WARNING,
    passes(ran(), of=[f"training {name}" for name in SCENARIO.cases]),
    *(fails(ran(name, **changes), stated, of=[f"training {name}"]) for name, changes, stated in WRONG),
    fails(ran("global-clipnorm", weight_deviation=0.022), look=(f"{LOOK}clipping",)),
    fails(ran("adam-built-late", weight_deviation=0.022), look=(f"{LOOK}optimizer-built-late",)),
    *(unknown(ran(name, measures={})) for name in ("adam-built-late", "nesterov", "global-clipnorm", "dropout")),
    unknown(ran("adam-built-in-scope", measures=MEASURES)),
    unknown(ran("metrics-of-classes", measures={"metric f1": 0.5, "reference f1": 0.5})),
    unknown(ran("clip-after-reduction", workers=_workers()[:1])),
)
