"""Linear regression by gradient descent, which NumPy computes too: an oracle that owes nothing to Keras.

A defect that is the same on one device and on many (an update that is left out, examples that are lost) cannot be
seen by comparing the two. It shows here.

Measures: ``iterations``, the updates that the optimizer counted; ``steps``, those that were due; ``one_device``, the
largest difference of a weight of Keras on one device from NumPy's.
"""

from __future__ import annotations

from typing import Any, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    EPOCHS,
    FEATURES,
    LEARNING_RATE,
    Batches,
    Reference,
    compile_model,
    inspect_weights,
    make_strategy,
    regression,
    train,
)

STEPS = 6
PER_REPLICA = 8


def mirrored(case: Case) -> None:
    """Over all replicas, and on one device, against NumPy."""
    strategy = make_strategy(case)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch)
    reference = _by_numpy(batches)
    case.phase("reference")
    alone = compile_model(case, _linear())
    alone.fit(batches.dataset(), epochs=EPOCHS, verbose=0, shuffle=False)
    gaps: List[Any] = [np.max(np.abs(one - other)) for one, other in zip(alone.get_weights(), reference.weights)]  # noqa: B905
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
    """Gradient descent on the mean squared error, from weights of zero, in double precision."""
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


CASES = {"mirrored": mirrored}
