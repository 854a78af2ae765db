"""Linear regression by gradient descent, which NumPy computes, too: a reference that does not depend on Keras.

A defect that is the same on one device and on several (a missing update, lost examples) is invisible when the two are
compared. It shows here.

Measures: ``iterations``, the updates that the optimizer counted; ``steps``, the expected number; ``one_device``, the
largest difference between a weight of Keras on one device and NumPy's.
"""

from __future__ import annotations

from typing import Any, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, FEATURES, LEARNING_RATE, STEPS, Batches, Reference, make_batches
from kdoctor_target.training.replicas import compile_model, inspect_weights, make_strategy, train


def mirrored(case: Case) -> None:
    """On all replicas, and on one device, against NumPy."""
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    reference = _by_numpy(batches)
    case.phase("reference")
    single = compile_model(case, _linear())
    single.fit(batches.dataset(), epochs=EPOCHS, verbose=0, shuffle=False)
    gaps: List[Any] = [np.max(np.abs(one - other)) for one, other in zip(single.get_weights(), reference.weights)]
    case.measure({"one_device": max(gaps), "steps": EPOCHS * STEPS})
    case.phase("build")
    with strategy.scope():
        model = compile_model(case, _linear())
    train(case, model, batches)
    case.measure({"iterations": int(model.optimizer.iterations.numpy())})
    case.note(reference_losses=reference.losses)
    inspect_weights(case, strategy, model, reference)


def _linear() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.InputLayer((FEATURES,)), layers.Dense(1, kernel_initializer="zeros")])


def _by_numpy(batches: Batches) -> Reference:
    """Gradient descent on the mean squared error, from zero weights, in double precision."""
    slopes, offset = np.zeros((FEATURES, 1)), np.zeros(1)
    losses: List[float] = []
    for _ in range(EPOCHS):
        epoch = []
        for start in range(0, len(batches.inputs), batches.global_batch):
            x = batches.inputs[start : start + batches.global_batch].astype("float64")
            errors = x @ slopes + offset - batches.targets[start : start + batches.global_batch]
            epoch.append(float(np.mean(errors**2)))
            slopes = slopes - LEARNING_RATE * 2 * x.T @ errors / len(x)
            offset = offset - LEARNING_RATE * 2 * errors.mean()
        losses.append(float(np.mean(epoch)))
    return Reference(losses, [slopes, offset])
