"""A job that is trained on one device, then over the replicas with the same global batches.

Measures: ``metric NAME`` and ``reference NAME`` for each value besides the loss that ``fit`` reports: that of the last
epoch, on all replicas and on one device.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, Reference, make_batches
from kdoctor_target.training.replicas import inspect_weights, make_model, make_strategy

History = Dict[str, List[float]]


def sgd() -> Any:
    """Plain SGD, which does not hide a gradient that is summed instead of averaged."""
    return tf.keras.optimizers.SGD(LEARNING_RATE)


def fit(model: Any, batches: Batches, epochs: int = EPOCHS, **options: Any) -> History:
    """``Model.fit``, with further options."""
    history: History = model.fit(batches.dataset(), epochs=epochs, verbose=0, shuffle=False, **options).history
    return history


def model_of(kind: Any, **options: Any) -> Callable[[], Any]:
    """Makes the model of the scenarios as an object of a subclass of ``tf.keras.Model``."""

    def make() -> Any:
        model = make_model(**options)
        return kind(model.inputs, model.outputs)

    return make


class Job(NamedTuple):
    """What is trained. Its functions are called once for each training: on all replicas in the strategy's scope."""

    optimizer: Callable[[], Any] = sgd
    model: Callable[[], Any] = make_model
    compile: Callable[[], Dict[str, Any]] = dict
    """Further options of ``compile``; the loss is the mean squared error unless it is one of them."""
    fit: Callable[[Any, Batches], History] = fit
    """Trains the compiled model, outside the scope; returns each reported value by epoch."""
    data: Callable[[int], Batches] = make_batches
    """The global batches for a number of replicas."""


class Training(NamedTuple):
    """A finished training."""

    model: Any
    started: List[Any]
    """The initial weights."""
    history: History


class Compared(NamedTuple):
    """Both trainings of a job."""

    strategy: Any
    batches: Batches
    single: Training
    """On one device."""
    replicated: Training


def compare(case: Case, job: Job, single: Optional[Job] = None, strategy: Any = None) -> Compared:
    """Train the job on one device and over the replicas, and note losses, metrics, weights and their difference.

    Args:
        case: the case that trains.
        job: what is trained over the replicas.
        single: what is trained on one device, if it differs.
        strategy: a ``MirroredStrategy`` over the requested replicas if None.
    """
    strategy = strategy or make_strategy(case)
    batches = job.data(strategy.num_replicas_in_sync)
    case.phase("reference")
    reference = _train(_build(single or job), single or job, batches)
    case.note(reference_losses=reference.history["loss"])
    case.phase("build")
    with strategy.scope():
        model = _build(job)
    case.note(optimizer=type(model.optimizer).__name__, **batches.facts())
    case.phase("train")
    replicated = _train(model, job, batches)
    case.note(losses=replicated.history["loss"])
    for name in replicated.history:
        if name != "loss" and name in reference.history:
            values = {"metric": replicated.history[name][-1], "reference": reference.history[name][-1]}
            case.measure({f"{whose} {name}": value for whose, value in values.items()})
    inspect_weights(case, strategy, model, Reference(reference.history["loss"], reference.model.get_weights()))
    return Compared(strategy, batches, reference, replicated)


def _build(job: Job) -> Any:
    model = job.model()
    # Keras turns XLA off under a strategy, so it must be off on one device, too.
    options = {"optimizer": job.optimizer(), "loss": "mean_squared_error", "jit_compile": False, **job.compile()}
    model.compile(**options)
    return model


def _train(model: Any, job: Job, batches: Batches) -> Training:
    started = model.get_weights()
    return Training(model, started, job.fit(model, batches))
