"""The checks of what TensorFlow and Keras refuse, of what is saved, and of random layers."""

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, judged, passes, skips, table, unknown
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Severity


def refused(error: str, phase: str = "train", message: str = "") -> dict[str, Any]:
    return {"outcome": "raised", "error_type": error, "error_message": message, "phase": phase}


ARGUMENT, RUNTIME = refused("InvalidArgumentError"), refused("RuntimeError")


def misused(replicas: int = 2, **jit: Any) -> SmokeRun:
    cases = (smoke_case("jit-compile", replicas, **jit), smoke_case("two-strategies", replicas, **RUNTIME))
    return smoke_run("smoke.misuse", replicas, *cases)


test_misuse = table(
    "smoke.misuse",
    Severity.ERROR,
    passes(misused(**ARGUMENT), ": refused: InvalidArgumentError in phase train"),
    fails(misused(), "6 of 6 variables"),
    unknown(smoke_run("smoke.misuse", 2, smoke_case("jit-compile", 2, **ARGUMENT))),
    skips(misused(1, **ARGUMENT)),
)

NOT_MIRRORED: dict[str, Any] = {"weights": Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)}
MEASURED: dict[str, dict[str, Any]] = {
    "model-sgd": refused("AssertionError"),
    "model-adam": RUNTIME,
    "optimizer-sgd": {},
    "optimizer-adam": RUNTIME,
    "metric-sgd": {},
    "metric-adam": {},
    "compile-sgd": {},
    "compile-adam": RUNTIME,
    "loaded-model-sgd": NOT_MIRRORED,
    "loaded-model-adam": NOT_MIRRORED,
}
"""The results of Keras 3.15.1."""
QUOTED = "{{function_node __wrapped__Add_/job:localhost}} Mixing: <a.b.Mirrored object at 0x7f46731c8bd0> is not it"


def outside(replicas: int = 2, **changes: dict[str, Any]) -> SmokeRun:
    given = {**MEASURED, **{name.replace("_", "-"): change for name, change in changes.items()}}
    cases = [smoke_case(name, replicas, **change) for name, change in given.items()]
    return smoke_run("smoke.outside-scope", replicas, *cases)


test_outside_scope = table(
    "smoke.outside-scope",
    Severity.ERROR,
    passes(outside(), of=10),
    fails(outside(model_sgd={}), "6 of 6 variables"),
    fails(outside(optimizer_sgd={"weight_deviation": 0.2}), "0.2"),
    fails(outside(metric_adam={"losses": (2.0, 1.0)}), "2, 1 instead of 1, 0.5"),
    fails(outside(compile_sgd=NOT_MIRRORED), "0 of 4 trainable variables"),
    passes(
        outside(model_adam=refused("RuntimeError", message=QUOTED)),
        "RuntimeError in phase train: Mixing: Mirrored is not it.",
    ),
    passes(outside(model_adam=refused("RuntimeError", message="x" * 301)), f": {'x' * 300} ...."),
    unknown(outside(metric_sgd={"weight_deviation": None})),
    unknown(outside(metric_sgd={"weights": None})),
    skips(outside(1)),
)


def test_measured_behaviour_is_refused_or_harmless() -> None:
    kinds = [item.observed.partition(":")[0] for item in judged("smoke.outside-scope", outside()).evidence]
    assert [kinds.count(kind) for kind in ("refused", "harmless")] == [4, 4]


ALL_OUTSIDE = smoke_case("all-outside", 2, **NOT_MIRRORED)
MIRRORED = Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=True)


def model(
    inside: dict[str, Any] | None = None, all_outside: dict[str, Any] | None = None, replicas: int = 2
) -> SmokeRun:
    return smoke_run(
        "smoke.model-outside-scope",
        replicas,
        smoke_case("compile-inside", replicas, **{**refused("AssertionError"), **(inside or {})}),
        smoke_case("all-outside", replicas, **{**NOT_MIRRORED, **(all_outside or {})}),
    )


test_model_outside_scope = table(
    "smoke.model-outside-scope",
    Severity.ERROR,
    *(passes(model(refused(error))) for error in ("RuntimeError", "ValueError", "AttributeError")),
    fails(model({"outcome": "trained", "error_type": None}), "2 replicas", of=["training compile-inside"]),
    *(
        fails(model(inside), of=["training compile-inside"])
        for inside in (
            {"error_type": "ResourceExhaustedError"},
            {"phase": "strategy"},
            {"outcome": "died", "signal": "SIGABRT"},
            {"outcome": "timed-out"},
        )
    ),
    fails(model(all_outside={"weights": MIRRORED}), "4 of 4 variables", of=["training all-outside"]),
    unknown(model(all_outside={"weights": None})),
    unknown(smoke_run("smoke.model-outside-scope", 2, ALL_OUTSIDE)),
    skips(model(replicas=1)),
    fails(  # fewer replicas were made
        smoke_run(
            "smoke.model-outside-scope", 2, smoke_case("compile-inside", 1, **refused("MemoryError")), ALL_OUTSIDE
        ),
        of=["training compile-inside"],
    ),
)

LOADED: dict[str, float | None] = {"variables": 8.0, "equal on 1": 8.0, "equal on 2": 8.0}


def saved(
    after: float | None = 2.0, epochs: float = 4.0, loaded: dict[str, float | None] = LOADED, **changes: Any
) -> SmokeRun:
    resumed = {} if after is None else {"epochs": epochs, "epochs_after": after}
    cases = (
        smoke_case("model-file", 2, measures=loaded),
        smoke_case("weights-file", 2, measures=LOADED),
        smoke_case("backup-and-restore", 2, measures=resumed, **changes),
    )
    return smoke_run("smoke.persistence", 2, *cases)


HALF = {"tolerance": 0.5}

test_persistence = table(
    "smoke.persistence",
    Severity.ERROR,
    passes(saved(), "saved on 2 replicas", "loaded on 1, 2", "8 variables"),
    passes(saved(weight_deviation=0.5), HALF, "resumed with 2 of 4 epochs left; weights within 0.5."),
    fails(saved(weight_deviation=0.51), HALF, "weights differ by up to 0.51 from those of an uninterrupted training"),
    fails(saved(4.0), "4 of 4 epochs were trained after the interruption: it started over"),
    fails(saved(loaded={**LOADED, "equal on 1": 7.0}), "7 of 8 variables"),
    unknown(saved(loaded={"variables": 8.0})),
    unknown(saved(None)),
    unknown(saved(weight_deviation=None)),
)

LAYERS = [f"Random{number}" for number in range(7)]
ZOOM = {"steps": 3.0, "equal RandomZoom": 0.0, "repeats RandomZoom": 1.0}
FIRST_SIX = "Random0, Random1, Random2, Random3, Random4, Random5 and 1 more"


def augmented(replicas: int = 2, **measures: float) -> SmokeRun:
    renamed = {name.replace("_", " "): value for name, value in measures.items()}
    cases = [smoke_case(name, replicas, measures=ZOOM) for name in ("noise", "colors", "seed-per-replica")]
    changed = smoke_case("augmentation", replicas, measures={**ZOOM, **renamed})
    return smoke_run("smoke.other-random-layers", replicas, *cases, changed)


def of_all(equal: float, same: float) -> SmokeRun:
    measures: dict[str, Any] = {f"equal_{name}": equal for name in LAYERS} | {
        f"repeats_{name}": same for name in LAYERS
    }
    return augmented(**measures)


test_other_random_layers = table(
    "smoke.other-random-layers",
    Severity.WARNING,
    passes(augmented(equal_RandomZoom=1.0)),  # flips that are equal by chance
    fails(augmented(equal_RandomZoom=3.0), "RandomZoom", of=["training augmentation"]),
    fails(
        augmented(steps=1.0, equal_RandomZoom=1.0),
        ": the same numbers on 2 replicas in all 1 step: RandomZoom (keras 3.15.1).",
    ),
    fails(of_all(3.0, 1.0), FIRST_SIX),
    fails(of_all(0.0, 0.0), FIRST_SIX),
    unknown(augmented(steps=0.0)),
    skips(augmented(1)),
)
