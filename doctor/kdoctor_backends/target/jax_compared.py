"""A job that is trained with Keras on JAX on one device, then over the devices of ``DataParallel``.

Measures: ``moved``, the largest change of a weight on one device; ``metric NAME`` and ``reference NAME`` for each value
besides the loss that ``fit`` reports in the last epoch; ``state``, ``mirrored_state`` and ``state_deviation``, as
``kdoctor_target.training.optimizers`` has them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import copies_agree, data_parallel, inspect_weights, is_mirrored, parts_of
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, Reference, dense_model, make_batches

History = Dict[str, List[float]]


def sgd(keras: Any) -> Any:
    """Plain SGD, which does not hide a gradient that is summed instead of averaged."""
    return keras.optimizers.SGD(LEARNING_RATE)


def fit(model: Any, batches: Batches, **options: Any) -> History:
    """``Model.fit``, with further options."""
    options = {"batch_size": batches.global_batch, "sample_weight": batches.sample_weights, "epochs": EPOCHS, **options}
    history: History = model.fit(batches.inputs, batches.targets, verbose=0, shuffle=False, **options).history
    return history


class JaxJob(NamedTuple):
    """What is trained. Its functions are called once for each training; those that make something get Keras."""

    optimizer: Callable[[Any], Any] = sgd
    model: Callable[[Any], Any] = dense_model
    compile: Callable[[Any], Dict[str, Any]] = lambda _: {}
    """Further options of ``compile``; the loss is the mean squared error unless it is one of them."""
    fit: Callable[[Any, Batches], History] = fit
    """Trains the compiled model; returns each reported value by epoch."""
    data: Callable[[int], Batches] = make_batches
    """The global batches for a number of devices."""


class JaxTraining(NamedTuple):
    """A finished training."""

    model: Any
    started: List[Any]
    """The initial weights."""
    history: History


class JaxCompared(NamedTuple):
    """Both trainings of a job."""

    distribution: Any
    single: JaxTraining
    """On one device."""
    parallel: JaxTraining


def compare(case: Case, job: JaxJob, single: Optional[JaxJob] = None, policy: Optional[str] = None) -> JaxCompared:
    """Train the job on one device and over all, and note losses, metrics, weights, state and their difference.

    Args:
        case: the case that trains.
        job: what is trained over the devices.
        single: what is trained on one device, if it differs.
        policy: the precision over the devices, if it is not that of one device.
    """
    distribution = data_parallel(case)
    import keras

    batches = job.data(distribution.device_mesh.devices.size)
    case.phase("reference")
    reference = _train(keras, single or job, batches)
    case.note(reference_losses=reference.history["loss"])
    case.phase("build")
    if policy:
        keras.mixed_precision.set_global_policy(policy)
    with distribution.scope():
        case.note(**batches.facts())
        trained = _train(keras, job, batches, case)
    optimizer = trained.model.optimizer
    case.note(losses=trained.history["loss"], optimizer=type(optimizer).__name__)
    for name in set(trained.history) - {"loss"}:
        values = {"metric": trained.history[name][-1], "reference": reference.history[name][-1]}
        case.measure({f"{whose} {name}": float(value) for whose, value in values.items()})
    weights = reference.model.get_weights()
    case.measure({"moved": max(float(np.max(np.abs(end - start))) for start, end in zip(reference.started, weights))})
    inspect_weights(case, distribution, trained.model, Reference(reference.history["loss"], weights))
    return JaxCompared(distribution, reference, trained)


def compare_state(case: Case, compared: JaxCompared) -> None:
    """Compare the optimizer's variables, too."""
    everywhere = [str(name) for name in np.ravel(compared.distribution.device_mesh.devices)]
    references = list(compared.single.model.optimizer.variables)
    mirrored, deviations = 0, [0.0]
    for reference, variable in zip(references, compared.parallel.model.optimizer.variables):
        parts = parts_of(variable)
        mirrored += is_mirrored(parts, everywhere) and copies_agree(parts)
        wanted = np.asarray(reference.value, dtype="float64")
        scale = float(np.max(np.abs(wanted))) or 1.0
        deviations.append(float(np.max(np.abs(np.asarray(variable.value, dtype="float64") - wanted))) / scale)
    case.measure({"state": len(references), "mirrored_state": mirrored, "state_deviation": float(np.max(deviations))})


def _train(keras: Any, job: JaxJob, batches: Batches, case: Optional[Case] = None) -> JaxTraining:
    model = job.model(keras)
    model.compile(**{"optimizer": job.optimizer(keras), "loss": "mean_squared_error", **job.compile(keras)})
    started = model.get_weights()
    if case:
        case.phase("train")
    return JaxTraining(model, started, job.fit(model, batches))
