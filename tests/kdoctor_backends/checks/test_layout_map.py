from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Severity

WHOLE = Weights(variables=4, mirrored=4, sharded=0, nonfinite=(), replicas_agree=True)
SHARDED = Weights(variables=4, mirrored=3, sharded=1, nonfinite=(), replicas_agree=True)
REFUSED: dict[str, Any] = {"outcome": "raised", "error_type": "ValueError", "error_message": "no", "phase": "build"}
TRAINED: dict[str, Any] = {"outcome": "trained", "error_type": None, "error_message": None, "phase": "inspect"}
MEASURED: dict[str, dict[str, Any]] = {
    "matches-nothing": {"weights": WHOLE},
    "partial-path": {"weights": WHOLE},
    "not-divisible": {**REFUSED, "error_type": "IndivisibleError"},
    "unknown-axis": REFUSED,
    "model-outside": {**REFUSED, "phase": "first step"},
}


def ran(replicas: int = 2, **changes: dict[str, Any]) -> SmokeRun:
    """The result of Keras 3.15, with changes."""
    cases = {name: {**case, **changes.get(name.replace("-", "_"), {})} for name, case in MEASURED.items()}
    made = [smoke_case(name, replicas, **case) for name, case in cases.items()]
    return smoke_run("smoke.layout-map", replicas, *made, tensorflow=None, jax="0.10.2")


test_layout_map = table(
    "smoke.layout-map",
    Severity.ERROR,
    passes(
        ran(),
        "nothing: trained unsharded without an error: 0 of 4 ",
        'path: trained unsharded without an error: 0 of 4 variables sharded; the key "hidden/kernel" needs the prefix',
        '".*".',
        "divisible: refused: IndivisibleError in phase build",
        "axis: refused: ValueError in phase build",
        "outside: refused: ValueError in the first",
    ),
    # Keras 3.13
    passes(ran(partial_path={"weights": SHARDED}), "path: sharded nevertheless: 1 of 4 variables sharded."),
    fails(ran(matches_nothing={"weights": SHARDED}), "nothing: ", "1 of 4"),
    fails(ran(partial_path={"weight_deviation": 0.2}), "path: weights differ by up to 0.2, "),
    fails(ran(not_divisible={**TRAINED, "weights": WHOLE}), "divisible: ", "0 of 4"),
    fails(ran(unknown_axis={**TRAINED, "weights": SHARDED}), "axis: ", "1 of 4"),
    fails(ran(model_outside={**TRAINED, "weights": SHARDED, "weight_deviation": 0.3}), "up to 0.3"),
    fails(ran(model_outside={"error_type": "MemoryError"}), "outside: MemoryError in the first step"),
    fails(ran(matches_nothing={"outcome": "timed-out", "phase": "trace", "finished": "data"}), "phase trace"),
    unknown(ran(matches_nothing={"weights": None})),
    skips(ran(1)),
)
