from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity

FITTED = ("uneven-tail", "uneven-batch", "drop-remainder")
INFERRED = ("evaluate", "predict", "validation", "padded")
REFUSED: dict[str, Any] = {
    "outcome": "raised",
    "error_type": "IndivisibleError",
    "error_message": "should evenly divide the shape",
}
EQUAL: dict[str, Any] = {"measures": {"difference": 1e-7}, "weights": None, "losses": ()}
ABSENT = {"outcome": "skipped", "skip_reason": "JAX is not installed here"}


def ran(changes: dict[str, Any] | None = None, /, replicas: int = 2, **more: Any) -> SmokeRun:
    shown = {name.replace("_", "-"): values for name, values in {**(changes or {}), **more}.items()}
    return smoke_run(
        "smoke.data-parallel-batches",
        replicas,
        *(smoke_case(name, replicas, final_batch=3, global_batch=17, **shown.get(name, {})) for name in FITTED),
        *(smoke_case(name, replicas, final_batch=3, **{**EQUAL, **shown.get(name, {})}) for name in INFERRED),
        tensorflow=None,
        jax="0.10.2",
    )


def refused(name: str, phase: str, **measures: float) -> SmokeRun:
    return ran({name: {**REFUSED, "phase": phase, "measures": measures}})


test_data_parallel_batches = table(
    "smoke.data-parallel-batches",
    Severity.WARNING,
    passes(ran()),
    fails(
        ran(uneven_tail={**REFUSED, "phase": "step 6"}, uneven_batch={**REFUSED, "phase": "data"}),
        "tail: IndivisibleError in step 6: should evenly divide the shape (final batch of 3 over 2 devices).",
        "batch: IndivisibleError in phase data: should evenly divide the shape (batch of 17 over 2 devices).",
        "Fix: Batch with drop_remainder=True",
        expected="it trains",
        of=["training uneven-tail", "training uneven-batch"],
    ),
    *(
        fails(
            refused(name, name, **{"weights left": left}),
            f" (final batch of 3 over 2 devices){lost}.\n",
            look=("kdoctor explain --reproduce jax-evaluate",),
            expected="it runs as on one device",
            of=[f"training {name}"],
        )
        for name in ("evaluate", "predict", "validation")
        for left, lost in ((0.0, "; the model has lost its weights"), (1.0, ""))
    ),
    # An alternative that raises is judged as any training.
    fails(refused("drop_remainder", "train"), expected="it trains on 2 devices", of=["training drop-remainder"]),
    fails(refused("padded", "train"), expected="it trains on 2 devices", of=["training padded"]),
    fails(ran(padded={"measures": {"difference": 0.4}}), "by up to 0.4.", of=1),
    fails(ran(uneven_tail={"weight_deviation": 0.07}), "tail: weights differ by up to 0.07, "),
    unknown(ran(uneven_tail={"weights": None})),
    unknown(ran(predict={"measures": {}})),
    skips(ran(replicas=1)),
    skips(ran(dict.fromkeys((*FITTED, *INFERRED), ABSENT)), "JAX is not installed"),
)
