"""Metrics that ``fit`` reports for its data and for validation data, compared with NumPy.

The learning rate is 0, so all metrics of an epoch are those of the initial weights.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import Job, compare, sgd
from kdoctor_target.training.numpy_model import measure_values, outputs_of
from kdoctor_target.training.regression import Batches, dense_model, make_batches
from kdoctor_target.training.replicas import make_strategy

CLASSES = 3
BOUNDARY = 0.5
"""Of the positive class."""
THRESHOLDS = 200
"""Of Keras's AUC, unless an argument changes it."""
EPSILON = 1e-7

Values = Dict[str, float]


def binary(case: Case) -> None:
    """Metrics of a model with one probability."""

    def targets(batches: Batches) -> Any:
        return (batches.targets > BOUNDARY).astype("float32")

    def metrics() -> List[Any]:
        kinds = tf.keras.metrics
        return [
            "accuracy",
            kinds.AUC(num_thresholds=THRESHOLDS, name="auc"),
            kinds.Precision(name="precision"),
            kinds.Recall(name="recall"),
            kinds.TruePositives(name="true_positives"),
            kinds.RootMeanSquaredError(name="rmse"),
        ]

    _report(case, 1, "sigmoid", "binary_crossentropy", targets, metrics, _binary)


def classes(case: Case) -> None:
    """Metrics of a model with several classes."""

    def targets(batches: Batches) -> Any:
        return np.eye(CLASSES, dtype="float32")[np.argmax(batches.inputs[:, :CLASSES], axis=1)]

    def metrics() -> List[Any]:
        kinds = tf.keras.metrics
        return ["accuracy", kinds.TopKCategoricalAccuracy(2, name="top_2"), *_f1(kinds)]

    _report(case, CLASSES, "softmax", "categorical_crossentropy", targets, metrics, _classes)


def on_batch(case: Case) -> None:
    """``train_on_batch`` and ``test_on_batch``, compared with one device."""

    def train(model: Any, batches: Batches) -> Any:
        steps = [model.train_on_batch(*batch, return_dict=True) for batch in batches.dataset().as_numpy_iterator()]
        inputs, targets = (part[: batches.global_batch] for part in (batches.inputs, batches.targets))
        tested = model.test_on_batch(inputs, targets, return_dict=True)
        history = {name: [float(np.asarray(step[name])) for step in steps] for name in steps[0]}
        return {**history, **{f"test_{name}": [float(np.asarray(value))] for name, value in tested.items()}}

    compare(case, Job(optimizer=sgd, compile=lambda: {"metrics": ["mae"]}, fit=train))


def _f1(kinds: Any) -> List[Any]:
    return [kinds.F1Score(average="macro", name="f1")] if hasattr(kinds, "F1Score") else []


def _report(  # noqa: PLR0913, PLR0917 - what a kind of model needs
    case: Case,
    outputs: int,
    activation: str,
    loss: str,
    targets: Callable[[Batches], Any],
    metrics: Callable[[], List[Any]],
    values: Callable[[Any, Any], Values],
) -> None:
    strategy = make_strategy(case)
    even = make_batches(strategy.num_replicas_in_sync)
    batches = even._replace(targets=targets(even))
    case.phase("build")
    with strategy.scope():
        model = dense_model(tf.keras, outputs=outputs, activation=activation)
        optimizer = tf.keras.optimizers.SGD(0.0)
        model.compile(optimizer=optimizer, loss=loss, metrics=metrics(), jit_compile=False)
    case.note(optimizer="SGD", **batches.facts())
    case.phase("train")
    data = batches.dataset()
    history = model.fit(data, validation_data=data, verbose=0, shuffle=False).history
    case.note(losses=history["loss"])
    expected = values(outputs_of(model, batches.inputs), batches.targets)
    for name, value in expected.items():
        if name in history:
            measure_values(case, {name: history[name][-1], f"val_{name}": history[f"val_{name}"][-1]}, value)


def _binary(outputs: Any, targets: Any) -> Values:
    chosen, wanted = outputs > BOUNDARY, targets > BOUNDARY
    hits = float(np.sum(chosen & wanted))
    return {
        "loss": _cross_entropy(np.where(wanted, outputs, 1.0 - outputs)),
        "accuracy": float(np.mean(chosen == wanted)),
        "auc": _area(outputs[:, 0], wanted[:, 0]),
        "precision": hits / max(float(np.sum(chosen)), 1.0),
        "recall": hits / max(float(np.sum(wanted)), 1.0),
        "true_positives": hits,
        "rmse": float(np.sqrt(np.mean((outputs - targets) ** 2))),
    }


def _area(outputs: Any, wanted: Any) -> float:
    """The area under the ROC curve, by the trapezoids between evenly spaced thresholds, as Keras computes it."""
    between = np.arange(1, THRESHOLDS - 1) / (THRESHOLDS - 1)
    above = outputs[None, :] > np.array([-EPSILON, *between, 1.0 + EPSILON])[:, None]
    hits, alarms = above[:, wanted].mean(axis=1), above[:, ~wanted].mean(axis=1)
    return float(np.sum((alarms[:-1] - alarms[1:]) * (hits[:-1] + hits[1:]) / 2))


def _classes(outputs: Any, targets: Any) -> Values:
    labels, chosen = targets.argmax(axis=1), outputs.argmax(axis=1)
    ranks = (-outputs).argsort(axis=1)
    scores = []
    for label in range(CLASSES):
        hits = float(np.sum((chosen == label) & (labels == label)))
        scores.append(2 * hits / max(float(np.sum(chosen == label) + np.sum(labels == label)), 1.0))
    return {
        "loss": _cross_entropy(outputs[np.arange(len(labels)), labels]),
        "accuracy": float(np.mean(chosen == labels)),
        "top_2": float(np.mean(np.any(ranks[:, :2] == labels[:, None], axis=1))),
        "f1": float(np.mean(scores)),
    }


def _cross_entropy(probabilities: Any) -> float:
    return float(-np.mean(np.log(np.clip(probabilities, EPSILON, 1.0))))
