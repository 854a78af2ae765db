"""Custom loops with one optimizer of each class, built in the strategy's scope or by the first step.

Measures: see ``kdoctor_target.training.optimizers``.
"""

from __future__ import annotations

from typing import Any, Callable

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import History
from kdoctor_target.training.custom_loop import one_step
from kdoctor_target.training.families import FAMILIES
from kdoctor_target.training.optimizers import cases_of, compare_state
from kdoctor_target.training.regression import Batches


def built_late(case: Case, make: Callable[[], Any]) -> None:
    """The first step builds the optimizer."""
    compare_state(case, make, _train)


def built_in_scope(case: Case, make: Callable[[], Any]) -> None:
    """``optimizer.build(model.trainable_variables)`` in the scope."""

    def train(model: Any, batches: Batches) -> History:
        with model.distribute_strategy.scope():
            model.optimizer.build(model.trainable_variables)
        return _train(model, batches)

    compare_state(case, make, train)


def _train(model: Any, batches: Batches) -> History:
    strategy = model.distribute_strategy
    step = one_step(strategy, model, model.optimizer, batches.global_batch)
    data = strategy.experimental_distribute_dataset(batches.dataset())
    losses = [float(step(inputs, targets)) for inputs, targets in data]
    return {"loss": [sum(losses) / len(losses)]}


_WAYS = {"built-in-scope": built_in_scope, "built-late": built_late}

CASES = {f"{name}-{way}": run for way, train in _WAYS.items() for name, run in cases_of(train, FAMILIES).items()}
