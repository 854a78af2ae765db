"""Batches that are not divisible by the number of devices of ``keras.distribution.DataParallel``.

Measures of the cases that evaluate or predict: ``difference``, the largest difference of a result from one device's;
``weights left``, whether the model still has its weights after an error.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import data_parallel, infer, inspect_weights, make_model, train, train_reference
from kdoctor_target.training.regression import PER_REPLICA, Batches, make_batches, regression

STEPS = 5


def uneven_tail(case: Case) -> None:
    """Only the final batch is not divisible; every device still gets an example of it."""
    distribution = data_parallel(case)
    _train(case, distribution, _with_tail(distribution))


def uneven_batch(case: Case) -> None:
    """No batch is divisible."""
    distribution = data_parallel(case)
    batch = PER_REPLICA * distribution.device_mesh.devices.size + 1
    _train(case, distribution, Batches(*regression(STEPS * batch), batch))


def drop_remainder(case: Case) -> None:
    """The alternative for fit: leave out the final batch."""
    distribution = data_parallel(case)
    data = _with_tail(distribution)
    whole = STEPS * data.global_batch
    _train(case, distribution, Batches(data.inputs[:whole], data.targets[:whole], data.global_batch))


def evaluate(case: Case) -> None:
    """``Model.evaluate`` on an uneven final batch."""
    _infer(case, "evaluate", _evaluate)


def predict(case: Case) -> None:
    """``Model.predict`` on an uneven final batch."""
    _infer(case, "predict", _predict)


def validation(case: Case) -> None:
    """``Model.fit`` on batches that divide, with validation data that do not."""
    _infer(case, "validation", _validate)


def padded(case: Case) -> None:
    """The alternative: pad with examples of weight zero, use weighted metrics, and cut the predictions."""
    _infer(case, "evaluate", _evaluate_padded, _evaluate_weighted)


def _with_tail(distribution: Any) -> Batches:
    devices = distribution.device_mesh.devices.size
    return make_batches(devices, STEPS, tail=2 * devices - 1)


def _train(case: Case, distribution: object, data: Batches) -> None:
    reference = train_reference(case, data)
    model = train(case, distribution, data)
    inspect_weights(case, distribution, model, reference)


Inference = Callable[[Any, Batches], Any]


def _infer(case: Case, phase: str, call: Inference, reference_call: "Inference | None" = None) -> None:
    distribution = data_parallel(case)
    data = _with_tail(distribution)
    case.note(**data.facts())
    case.phase("reference")
    reference = np.asarray((reference_call or call)(make_model(), data))
    case.phase("build")
    with distribution.scope():
        model = make_model()
        result = np.asarray(infer(case, model, phase, lambda: call(model, data)))
    case.measure({"difference": float(np.max(np.abs(result - reference)))})


def _evaluate(model: Any, data: Batches) -> Any:
    return model.evaluate(data.inputs, data.targets, batch_size=data.global_batch, verbose=0)


def _predict(model: Any, data: Batches) -> Any:
    return model.predict(data.inputs, batch_size=data.global_batch, verbose=0)


def _validate(model: Any, data: Batches) -> Any:
    whole = STEPS * data.global_batch
    history = model.fit(
        data.inputs[:whole],
        data.targets[:whole],
        batch_size=data.global_batch,
        validation_data=(data.inputs, data.targets),
        validation_batch_size=data.global_batch,
        verbose=0,
        shuffle=False,
    ).history
    return [history["val_loss"], history["val_mae"]]


def _evaluate_weighted(model: Any, data: Batches) -> Any:
    """The weighted metric and the predictions, without padding."""
    metrics = model.evaluate(data.inputs, data.targets, batch_size=data.global_batch, verbose=0)
    return [metrics[1], *np.ravel(_predict(model, data))]


def _evaluate_padded(model: Any, data: Batches) -> Any:
    """The same with padding. The loss is left out: Keras divides it by the number of examples, padding included."""
    examples = len(data.inputs)
    missing = -examples % data.global_batch
    inputs, targets = (np.pad(array, ((0, missing), (0, 0))) for array in (data.inputs, data.targets))
    weights = np.pad(np.ones(examples, "float32"), (0, missing))
    metrics = model.evaluate(inputs, targets, sample_weight=weights, batch_size=data.global_batch, verbose=0)
    predicted = model.predict(inputs, batch_size=data.global_batch, verbose=0)
    return [metrics[1], *np.ravel(predicted[:examples])]
