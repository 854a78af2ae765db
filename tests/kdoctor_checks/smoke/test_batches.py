"""The checks of batches that do not fill all replicas."""

from dataclasses import replace
from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Action, Severity
from kdoctor_checks.smoke._judging import starves

NAN = Weights(variables=6, mirrored=6, nonfinite=("a/gamma", "out/bias"), replicas_agree=True)
ONE_NAN = replace(NAN, nonfinite=("a/gamma",))
NO_KERAS: dict[str, Any] = {"keras": None, "tensorflow": None}
GUARDS = ("drop_remainder=True", "synchronized=True", "steps_per_epoch")
OVER = "a final batch of 1 over 2 replicas"


def starved(replicas: int = 2, **changes: Any) -> SmokeRun:
    case = smoke_case("starved-tail", replicas, **{"final_batch": 1, "weight_deviation": None, **changes})
    return smoke_run("smoke.uneven-final-batch", replicas, case)


test_starved_replica = table(
    "smoke.starved-replica",
    Severity.WARNING,
    passes(starved(), f": weights stay finite after {OVER}; reported losses are 1, 0.5"),
    fails(
        starved(weights=NAN, losses=(0.78, None)),
        f": NaN or infinity in 2 variables (a/gamma, out/bias) after {OVER}",
        "0.78, not finite",
        *GUARDS,
        of=["keras 3.15.1"],
        action=Action.CHANGE_CODE,
    ),
    fails(starved(losses=(None, 1.0)), f": weights are finite after {OVER}, but "),
    fails(replace(starved(losses=(None, None)), keras=None), of=["training starved-tail"]),
    fails(
        starved(outcome="raised", error_type="InvalidArgumentError"),
        ": InvalidArgumentError",
        expected="finite weights",
    ),
    # By the version matrix: with 4 replicas, tails of 1, 2, 3, 5, 6 and 9 leave one empty.
    passes(starved(4, final_batch=5)),
    unknown(starved(4, final_batch=4)),
    unknown(starved(4, final_batch=7)),
    unknown(starved(final_batch=2), "final batch of 2 over 2 replicas: no replica is empty"),
    unknown(starved(weights=None), "its weights or its losses were not read"),
    unknown(starved(losses=()), "its weights or its losses were not read"),
    unknown(starved(final_batch=None)),
    unknown(smoke_run("smoke.uneven-final-batch", 2, smoke_case("guarded", 2))),
    skips(starved(1)),
)


def uneven(fed: dict[str, Any] | None = None, guarded: dict[str, Any] | None = None, replicas: int = 2) -> SmokeRun:
    fed_case = smoke_case("fed-tail", replicas, **{"final_batch": 3, "weight_deviation": 0.046, **(fed or {})})
    return smoke_run("smoke.uneven-final-batch", replicas, fed_case, smoke_case("guarded", replicas, **(guarded or {})))


RUINED_BY_NAN = {"weights": ONE_NAN, "weight_deviation": None}

test_uneven_final_batch = table(
    "smoke.uneven-final-batch",
    Severity.ERROR,
    passes(uneven(), "3 over 2 replicas", "0.046"),
    fails(uneven(RUINED_BY_NAN), "a/gamma", "with keras 3.15.1 and TensorFlow 2.21.0: ", of=["training fed-tail"]),
    fails(replace(uneven(RUINED_BY_NAN), **NO_KERAS), "with this Keras and TensorFlow: "),
    fails(uneven({"losses": (1.0, None)}), ": losses 1, not finite (", of=["training fed-tail"]),
    fails(uneven(guarded={"weight_deviation": 0.01}), "0.01", of=["training guarded"]),
    passes(uneven(guarded={"weight_deviation": 0.5}), {"tolerance": 0.5}),
    unknown(uneven(guarded={"weight_deviation": None})),
    unknown(uneven({"weights": None})),
    unknown(
        smoke_run("smoke.uneven-final-batch", 2, smoke_case("fed-tail", 2, final_batch=3), failure="the child died"),
        reason="training guarded: the child died",
    ),
    unknown(
        smoke_run("smoke.uneven-final-batch", 2, smoke_case("fed-tail", 1), smoke_case("guarded", 1)), "1 of 2 replicas"
    ),
    *(unknown(uneven({"final_batch": size}), f"final batch of {size} over") for size in (None, 1, 16)),
    *(unknown(uneven(guarded={"final_batch": size}), f"final batch of {size} over") for size in (None, 1)),
    unknown(uneven(replicas=8), "final batch of 3 over 8 replicas"),  # six are empty
    unknown(
        replace(uneven({"devices": ("/device:CPU:0", "/device:CPU:1")}), devices_kind="gpu"),
        "0 of 2 replicas were on GPUs",
    ),
    skips(uneven(replicas=1)),
)

FINITE = {f"tail {tail}": 0.0 for tail in range(1, 17)}
RUINED = {f"tail {tail}": 8.0 for tail in (1, 2, 3, 5, 6, 9)}
"""The tails that leave one of four replicas empty, by the version matrix."""


def sweep(plain: dict[str, float], normalised: dict[str, float], replicas: int = 4) -> SmokeRun:
    given = {"plain": plain, "normalised": normalised, "synchronized": {}}
    cases = [smoke_case(name, replicas, measures={**FINITE, **ruined}) for name, ruined in given.items()]
    return smoke_run("smoke.final-batch-sweep", replicas, *cases)


test_final_batch_sweep = table(
    "smoke.final-batch-sweep",
    Severity.ERROR,
    passes(sweep({}, RUINED)),  # Keras 3
    passes(sweep({}, {})),  # Keras 2
    fails(sweep({}, {"tail 4": 1.0}), "[4]."),
    fails(sweep({"tail 5": 1.0}, RUINED), "unexpected NaN at [5];"),  # nothing normalises there
    unknown(smoke_run("smoke.final-batch-sweep", 4, smoke_case("plain", 4)), "no size was tried."),
    skips(sweep({}, RUINED, 1)),
)


def test_starves_matches_a_split_into_chunks() -> None:
    """Compared with the split itself, into chunks of ceil(n / R)."""
    for replicas in range(2, 9):
        for tail in range(1, 4 * replicas + 1):
            chunk = -(-tail // replicas)
            last = range(tail)[(replicas - 1) * chunk : replicas * chunk]
            assert starves(tail, replicas) == (len(last) == 0)


def odd(
    first: float | None = 4.0, total: float = 8.0, batch: int = 8, replicas: int = 2, **of_unknown: Any
) -> SmokeRun:
    shares = smoke_case(
        "per-replica-batch", replicas, global_batch=batch, measures={"first_share": first, "shares": total}
    )
    return smoke_run("smoke.odd-batches", replicas, smoke_case("unknown-size", replicas, **of_unknown), shares)


def shared(first: float, total: float) -> Row:
    return fails(odd(first, total), f"{first:.0f} examples", "4")


test_odd_batches = table(
    "smoke.odd-batches",
    Severity.ERROR,
    passes(odd(), "batch of 8", "2 replicas", "4 examples", "8 in total", of=2),
    passes(odd(9.0, 17.0, 17)),  # the first replica gets the odd example
    shared(8.0, 16.0),  # every replica gets all
    shared(4.0, 4.0),  # a replica gets none
    shared(3.0, 8.0),
    fails(odd(losses=(1.0, None)), "loss"),
    unknown(odd(None)),
    unknown(odd(weights=None)),
    skips(odd(replicas=1)),
)
