"""The failure path: a model that was built outside the strategy's scope."""

from __future__ import annotations

from typing import Any

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import (
    compile_model,
    compiled_model,
    inspect_weights,
    make_model,
    make_strategy,
    train,
)

STEPS = 4


def compile_inside(case: Case) -> None:
    """Built outside and compiled inside the scope: Keras should refuse it."""
    strategy = make_strategy(case)
    case.phase("build")
    model = make_model()
    with strategy.scope():
        compile_model(case, model)
    _train(case, strategy, model)


def all_outside(case: Case) -> None:
    """The strategy's scope is never entered: Keras trains on one device without a warning."""
    strategy = make_strategy(case)
    case.phase("build")
    _train(case, strategy, compiled_model(case))


def _train(case: Case, strategy: Any, model: Any) -> None:
    train(case, model, make_batches(strategy.num_replicas_in_sync, STEPS))
    inspect_weights(case, strategy, model)
