"""Each part of a training made outside the strategy's scope, with an optimizer that has slots and one without.

Measures, of the cases that train: ``optimizer_variables`` and ``metric_variables``, the number of variables;
``optimizer_mirrored`` and ``metric_mirrored``, how many of them have a copy on every replica.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import (
    fit_reference,
    inspect_weights,
    make_model,
    make_strategy,
    read_copies,
    train,
)

STEPS = 4

OPTIMIZERS: Dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.keras.optimizers.SGD(0.1),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
}


def _model(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    model = make_model()
    with strategy.scope():
        _compile(model, optimizer(), tf.keras.metrics.MeanAbsoluteError())
    return model


def _optimizer(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    made = optimizer()
    with strategy.scope():
        model = make_model()
        _compile(model, made, tf.keras.metrics.MeanAbsoluteError())
    return model


def _metric(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    made = tf.keras.metrics.MeanAbsoluteError()
    with strategy.scope():
        model = make_model()
        _compile(model, optimizer(), made)
    return model


def _compile_outside(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    with strategy.scope():
        model = make_model()
    _compile(model, optimizer(), tf.keras.metrics.MeanAbsoluteError())
    return model


def _loaded(case: Case, _strategy: Any, optimizer: Callable[[], Any]) -> Any:
    path = str(case.file("model.keras"))
    saved = make_model()
    _compile(saved, optimizer(), "mae")
    saved.save(path)
    return tf.keras.models.load_model(path)


PARTS = {
    "model": _model,
    "optimizer": _optimizer,
    "metric": _metric,
    "compile": _compile_outside,
    "loaded-model": _loaded,
}


def _compile(model: Any, optimizer: Any, metric: Any) -> None:
    model.compile(optimizer=optimizer, loss="mean_squared_error", metrics=[metric], jit_compile=False)


def _make_case(part: str, optimizer: str) -> Callable[[Case], None]:
    def run(case: Case) -> None:
        strategy = make_strategy(case)
        case.note(optimizer=optimizer)
        batches = make_batches(strategy.num_replicas_in_sync, STEPS)
        case.phase("reference")
        single = make_model()
        _compile(single, OPTIMIZERS[optimizer](), "mae")
        reference = fit_reference(case, single, batches)
        case.phase("build")
        model = PARTS[part](case, strategy, OPTIMIZERS[optimizer])
        train(case, model, batches)
        _count(case, strategy, "optimizer", model.optimizer.variables)
        _count(case, strategy, "metric", [variable for metric in model.metrics for variable in metric.variables])
        inspect_weights(case, strategy, model, reference)

    return run


def _count(case: Case, strategy: Any, what: str, variables: Any) -> None:
    listed: Any = variables() if callable(variables) else variables
    mirrored = sum(len(read_copies(strategy, variable)) == strategy.num_replicas_in_sync for variable in listed)
    case.measure({f"{what}_variables": len(listed), f"{what}_mirrored": mirrored})


CASES = {f"{part}-{optimizer}": _make_case(part, optimizer) for part in PARTS for optimizer in OPTIMIZERS}
