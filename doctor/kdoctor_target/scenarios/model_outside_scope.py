"""The failure path: a model that was built outside the strategy's scope."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.scenarios.misuse import train_and_inspect
from kdoctor_target.training.replicas import compile_model, compiled_model, make_model, make_strategy


def compile_inside(case: Case) -> None:
    """Built outside and compiled inside the scope: Keras should refuse it."""
    strategy = make_strategy(case)
    case.phase("build")
    model = make_model()
    with strategy.scope():
        compile_model(case, model)
    train_and_inspect(case, strategy, model)


def all_outside(case: Case) -> None:
    """The strategy's scope is never entered: Keras trains on one device without a warning."""
    strategy = make_strategy(case)
    case.phase("build")
    train_and_inspect(case, strategy, compiled_model(case))
