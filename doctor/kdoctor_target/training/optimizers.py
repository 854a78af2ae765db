"""The optimizers that Keras ships, and what one knows after a training.

Measures: ``moved``, the largest change of a weight on one device; ``state``, the number of the optimizer's variables;
``mirrored_state``, those with a copy on every replica, all equal; ``state_deviation``, the largest difference of such a
variable from one device's, as a part of the largest value that the variable has there.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import History, Job, compare, fit
from kdoctor_target.training.regression import EPOCHS, STEPS, Batches, make_batches
from kdoctor_target.training.replicas import read_copies


class Optimizer(NamedTuple):
    """A class of ``tf.keras.optimizers`` and its options."""

    name: str
    options: Dict[str, Any]

    def make(self) -> Any:
        """The optimizer."""
        return getattr(tf.keras.optimizers, self.name)(**self.options)


def optimizer(name: str, learning_rate: Any, **options: Any) -> Optimizer:
    """An optimizer that moves the weights of the scenarios by a tenth or more, so that an error shows."""
    return Optimizer(name, {"learning_rate": learning_rate, **options})


FAMILIES = {
    "sgd": optimizer("SGD", 0.1),
    "momentum": optimizer("SGD", 0.05, momentum=0.9),
    "adam": optimizer("Adam", 0.01),
    "adamw": optimizer("AdamW", 0.01, weight_decay=0.1),
    "adamax": optimizer("Adamax", 0.02),
    "adadelta": optimizer("Adadelta", 20.0),
    "adagrad": optimizer("Adagrad", 0.1),
    "rmsprop": optimizer("RMSprop", 0.01),
    "nadam": optimizer("Nadam", 0.01),
    "lion": optimizer("Lion", 0.01),
    "adafactor": optimizer("Adafactor", 0.05),
    "ftrl": optimizer("Ftrl", 0.1),
    "muon": optimizer("Muon", 0.01),
    "lamb": optimizer("Lamb", 0.02),
}
"""One for each class, and SGD with state."""

OPTIMIZERS = {
    **FAMILIES,
    "nesterov": optimizer("SGD", 0.05, momentum=0.9, nesterov=True),
    "amsgrad": optimizer("Adam", 0.01, amsgrad=True),
    "centered-rmsprop": optimizer("RMSprop", 0.01, centered=True, momentum=0.5),
}


def one_epoch(replicas: int) -> Batches:
    """As many steps as in other scenarios, in one epoch, because the input of each epoch takes a third of a second."""
    return make_batches(replicas, EPOCHS * STEPS)


def fit_once(model: Any, batches: Batches) -> History:
    """``Model.fit`` for one epoch."""
    return fit(model, batches, epochs=1)


Train = Callable[[Any, Batches], History]


def cases_of(train: Callable[[Case, Callable[[], Any]], Any], optimizers: Dict[str, Optimizer]) -> Dict[str, Any]:
    """A case for each optimizer, skipped where this Keras lacks it."""

    def case_of(one: Optimizer) -> Callable[[Case], None]:
        def run(case: Case) -> None:
            if not hasattr(tf.keras.optimizers, one.name):
                case.skip(f"this Keras has no optimizer {one.name}")
            train(case, one.make)

        return run

    return {name: case_of(one) for name, one in optimizers.items()}


def compare_state(
    case: Case, make: Callable[[], Any], train: Train = fit_once, data: Callable[[int], Batches] = one_epoch
) -> None:
    """Train with the optimizer, over the replicas with ``train``, and compare the optimizer's variables, too."""
    trained = compare(case, Job(make, fit=train, data=data), Job(make, fit=fit_once, data=data))
    started, ended = trained.single.started, trained.single.model.get_weights()
    case.measure({"moved": max(float(np.max(np.abs(after - before))) for before, after in zip(started, ended))})
    replicas = set(trained.strategy.extended.worker_devices)
    references = list(trained.single.model.optimizer.variables)
    state = [read_copies(trained.strategy, each) for each in trained.replicated.model.optimizer.variables]
    mirrored, deviations = 0, [0.0]
    for reference, copies in zip(references, state):
        values = [np.asarray(copy, dtype="float64") for copy in copies]
        equal = all(np.array_equal(values[0], value, equal_nan=True) for value in values)
        mirrored += equal and {copy.device for copy in copies} == replicas
        wanted = np.asarray(reference, dtype="float64")
        scale = float(np.max(np.abs(wanted))) or 1.0
        deviations += [float(np.max(np.abs(value - wanted))) / scale for value in values]
    case.measure({"state": len(references), "mirrored_state": mirrored, "state_deviation": float(np.max(deviations))})
