"""BatchNormalization over data whose shares differ between replicas."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import sgd
from kdoctor_target.training.numpy_model import measure_values
from kdoctor_target.training.regression import FEATURES, make_batches
from kdoctor_target.training.replicas import compiled_model, inspect_weights, make_strategy, train, train_reference


def plain(case: Case) -> None:
    """Every replica normalises its own examples, so the weights differ from one device's, but are finite."""
    _train(case, synchronized=False)


def synchronized(case: Case) -> None:
    """All replicas normalise by the moments of the whole batch, as one device does."""
    _train(case, synchronized=True)


def moving_statistics(case: Case) -> None:
    """The moving mean of the inputs after an epoch in which the last replica gets the largest of each batch."""
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    parts = [np.sort(part, axis=0) for part in np.split(batches.inputs, len(batches.inputs) // batches.global_batch)]
    case.phase("build")
    with strategy.scope():
        layer = tf.keras.layers.BatchNormalization(momentum=0.5)
        model = tf.keras.Sequential([tf.keras.layers.InputLayer((FEATURES,)), layer, tf.keras.layers.Dense(1)])
        model.compile(optimizer=sgd(), loss="mean_squared_error", jit_compile=False)
    case.note(optimizer="SGD", **batches.facts())
    case.phase("train")
    model.fit(batches._replace(inputs=np.concatenate(parts)).dataset(), shuffle=False, verbose=0)
    expected = 0.0
    for part in parts:
        expected = 0.5 * expected + 0.5 * float(np.mean(part[:, 0]))
    measure_values(case, {"moving mean": np.asarray(layer.moving_mean)[0]}, expected)


def _train(case: Case, *, synchronized: bool) -> None:
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    reference = train_reference(case, batches, normalised=True)
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case, normalised=True, synchronized=synchronized)
    train(case, model, batches)
    inspect_weights(case, strategy, model, reference)
