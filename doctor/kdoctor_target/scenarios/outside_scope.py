"""Each part of a training made outside the strategy's scope, alone, with an optimizer that has slots and one without.

Measures, of those that train: ``optimizer_variables``, ``optimizer_mirrored``, ``metric_variables`` and
``metric_mirrored``, how many variables there are and how many have a copy on every replica.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    EPOCHS,
    Batches,
    Reference,
    inspect_weights,
    make_model,
    make_strategy,
    read_copies,
    regression,
    train,
)

STEPS = 4
PER_REPLICA = 8

OPTIMIZERS: Dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.keras.optimizers.SGD(0.1),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
}


def _model(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    model = make_model(normalised=False)
    with strategy.scope():
        _compile(model, optimizer(), tf.keras.metrics.MeanAbsoluteError())
    return model


def _optimizer(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    made = optimizer()
    with strategy.scope():
        model = make_model(normalised=False)
        _compile(model, made, tf.keras.metrics.MeanAbsoluteError())
    return model


def _metric(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    made = tf.keras.metrics.MeanAbsoluteError()
    with strategy.scope():
        model = make_model(normalised=False)
        _compile(model, optimizer(), made)
    return model


def _compile_outside(_case: Case, strategy: Any, optimizer: Callable[[], Any]) -> Any:
    with strategy.scope():
        model = make_model(normalised=False)
    _compile(model, optimizer(), tf.keras.metrics.MeanAbsoluteError())
    return model


def _loaded(case: Case, _strategy: Any, optimizer: Callable[[], Any]) -> Any:
    path = str(case.stem.with_name(case.stem.name + ".model.keras"))
    saved = make_model(normalised=False)
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
        global_batch = PER_REPLICA * strategy.num_replicas_in_sync
        inputs, targets = regression(STEPS * global_batch)
        batches = Batches(inputs, targets, global_batch)
        reference = _reference(case, batches, OPTIMIZERS[optimizer])
        case.phase("build")
        model = PARTS[part](case, strategy, OPTIMIZERS[optimizer])
        train(case, model, batches)
        _count(case, strategy, "optimizer", model.optimizer.variables)
        _count(case, strategy, "metric", [variable for metric in model.metrics for variable in metric.variables])
        inspect_weights(case, strategy, model, reference)

    return run


def _reference(case: Case, batches: Batches, optimizer: Callable[[], Any]) -> Reference:
    """The training on one device, with that optimizer."""
    case.phase("reference")
    model = make_model(normalised=False)
    _compile(model, optimizer(), "mae")
    losses = model.fit(batches.dataset(), epochs=EPOCHS, verbose=0, shuffle=False).history["loss"]
    case.note(reference_losses=losses)
    return Reference(losses, model.get_weights())


def _count(case: Case, strategy: Any, what: str, variables: Any) -> None:
    listed: Any = variables() if callable(variables) else variables
    mirrored = sum(len(read_copies(strategy, variable)) == strategy.num_replicas_in_sync for variable in listed)
    case.measure({"{}_variables".format(what): len(listed), "{}_mirrored".format(what): mirrored})


CASES = {
    "model-sgd": _make_case("model", "sgd"),
    "model-adam": _make_case("model", "adam"),
    "optimizer-sgd": _make_case("optimizer", "sgd"),
    "optimizer-adam": _make_case("optimizer", "adam"),
    "metric-sgd": _make_case("metric", "sgd"),
    "metric-adam": _make_case("metric", "adam"),
    "compile-sgd": _make_case("compile", "sgd"),
    "compile-adam": _make_case("compile", "adam"),
    "loaded-model-sgd": _make_case("loaded-model", "sgd"),
    "loaded-model-adam": _make_case("loaded-model", "adam"),
}
