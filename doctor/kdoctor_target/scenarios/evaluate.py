"""evaluate, predict and validation over several replicas, compared with NumPy.

Measures, besides those of ``numpy_model``: ``examples``, ``predictions`` and ``in_order``, the number of examples, of
returned predictions, and of those that are the prediction for the example at their place, for all data sets together.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import sgd
from kdoctor_target.training.numpy_model import measure_values, outputs_of
from kdoctor_target.training.regression import Batches, make_batches
from kdoctor_target.training.replicas import make_model, make_strategy

STEPS = 2
TOLERANCE = 1e-5


def evaluate(case: Case) -> None:
    """``evaluate`` on data that divides, and on data with a smaller last batch that feeds each replica."""
    model, sets = _prepare(case)
    for name, batches in sets.items():
        reported = model.evaluate(batches.dataset(), verbose=0, return_dict=True)
        _measure(case, model, batches, {name: reported})


def predict(case: Case) -> None:
    """``predict`` on the same data: the number of predictions, and their order."""
    model, sets = _prepare(case)
    _count(case, model, [(batches.inputs, model.predict(_inputs(batches), verbose=0)) for batches in sets.values()])


def predict_on_batch(case: Case) -> None:
    """``predict_on_batch``, which should predict each example once."""
    model, sets = _prepare(case)
    first = sets["even"].inputs[: sets["even"].global_batch]
    _count(case, model, [(first, np.asarray(model.predict_on_batch(first)))])


def validation(case: Case) -> None:
    """``validation_data`` and ``validation_split`` with a smaller last batch."""
    model, sets = _prepare(case)
    even, uneven = sets["even"], sets["uneven"]
    history = model.fit(even.dataset(), validation_data=uneven.dataset(), verbose=0, shuffle=False).history
    _measure(case, model, uneven, {"data": _last_of(history)})
    inputs, targets = (np.concatenate(pair) for pair in ((even.inputs, uneven.inputs), (even.targets, uneven.targets)))
    history = model.fit(
        inputs,
        targets,
        batch_size=even.global_batch,
        validation_split=(len(uneven.inputs) - 0.5) / len(inputs),
        verbose=0,
        shuffle=False,
    ).history
    case.note(losses=history["loss"])
    _measure(case, model, uneven, {"split": _last_of(history)})


def first_batch_uneven(case: Case) -> None:
    """``evaluate`` on fewer examples than a batch, whose number is odd."""
    model, sets = _prepare(case)
    whole = sets["uneven"]
    few = whole._replace(inputs=whole.inputs[: _tail(case)], targets=whole.targets[: _tail(case)])
    reported = model.evaluate(few.dataset(), verbose=0, return_dict=True)
    _measure(case, model, few, {"few": reported})


def _prepare(case: Case) -> Tuple[Any, Dict[str, Batches]]:
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    case.phase("build")
    with strategy.scope():
        model = make_model()
        model.compile(optimizer=sgd(), loss="mean_squared_error", metrics=["mae"], jit_compile=False)
    sets = {"even": make_batches(replicas, STEPS), "uneven": make_batches(replicas, STEPS, 2 * replicas - 1)}
    case.note(optimizer="SGD", **sets["uneven"].facts())
    case.phase("train")
    return model, sets


def _tail(case: Case) -> int:
    return 2 * (case.replicas or len(tf.config.list_logical_devices("GPU"))) - 1


def _inputs(batches: Batches) -> Any:
    return tf.data.Dataset.from_tensor_slices(batches.inputs).batch(batches.global_batch)


def _last_of(history: Dict[str, Any]) -> Dict[str, float]:
    return {name.replace("val_", ""): values[-1] for name, values in history.items() if name.startswith("val_")}


def _measure(case: Case, model: Any, batches: Batches, reported: Dict[str, Dict[str, float]]) -> None:
    errors = outputs_of(model, batches.inputs) - batches.targets
    expected = {"loss": float(np.mean(errors**2)), "mae": float(np.mean(np.abs(errors)))}
    for where, values in reported.items():
        for name, value in expected.items():
            measure_values(case, {f"{name} ({where})": values[name]}, value)


def _count(case: Case, model: Any, predicted: Any) -> None:
    counts = {"examples": 0, "predictions": 0, "in_order": 0}
    for inputs, predictions in predicted:
        expected = outputs_of(model, inputs)
        pairs = min(len(expected), len(predictions))
        counts["examples"] += len(inputs)
        counts["predictions"] += len(predictions)
        counts["in_order"] += int(np.sum(np.abs(expected[:pairs] - predictions[:pairs]) < TOLERANCE))
    case.measure(counts)
