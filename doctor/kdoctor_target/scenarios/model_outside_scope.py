"""The failure path: a model that was made outside the strategy's scope."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    Batches,
    compile_model,
    inspect_weights,
    make_model,
    make_strategy,
    regression,
    train,
)

STEPS = 4
PER_REPLICA = 8


def compile_inside(case: Case) -> None:
    """Model outside and compile inside the scope: Keras is to refuse it, in some way."""
    strategy = make_strategy(case)
    case.phase("build")
    model = make_model(normalised=False)
    with strategy.scope():
        compile_model(case, model)
    train(case, model, _batches(strategy.num_replicas_in_sync))
    inspect_weights(case, strategy, model)


def all_outside(case: Case) -> None:
    """A strategy was made, but nothing is in its scope: Keras trains on one device and says nothing."""
    strategy = make_strategy(case)
    case.phase("build")
    model = compile_model(case, make_model(normalised=False))
    train(case, model, _batches(strategy.num_replicas_in_sync))
    inspect_weights(case, strategy, model)


def _batches(replicas: int) -> Batches:
    inputs, targets = regression(STEPS * PER_REPLICA * replicas)
    return Batches(inputs, targets, PER_REPLICA * replicas)


CASES = {"compile-inside": compile_inside, "all-outside": all_outside}
