"""Every size of the final batch, from one example to a full batch, for three variants of the model.

Measures: ``tail 1`` and so on, the number of variables that are not finite after two epochs with such a final batch.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, FEATURES, LEARNING_RATE, Batches, regression
from kdoctor_target.training.replicas import make_strategy, nonfinite
from kdoctor_target.training.steps import clock

PER_REPLICA = 4
MOST_SIZES = 32
"""With more replicas than this, about as many sizes are tried, evenly spaced; the smallest are always among them."""


def plain(case: Case) -> None:
    """Without normalisation."""
    _sweep(case, normalise=False)


def normalised(case: Case) -> None:
    """With BatchNormalization: the known hazard."""
    _sweep(case, normalise=True)


def synchronized(case: Case) -> None:
    """With synchronized BatchNormalization: a guard."""
    _sweep(case, normalise=True, synchronized=True)


def _sweep(case: Case, *, normalise: bool, **options: Any) -> None:
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    global_batch = PER_REPLICA * replicas
    case.note(global_batch=global_batch)
    every = -(-global_batch // MOST_SIZES)
    for tail in sorted({*range(1, min(replicas + 2, global_batch)), *range(1, global_batch + 1, every), global_batch}):
        case.phase("build")
        layers = tf.keras.layers
        with strategy.scope():
            middle = [layers.BatchNormalization(**options)] if normalise else []
            model = tf.keras.Sequential([layers.InputLayer((FEATURES,)), layers.Dense(4), *middle, layers.Dense(1)])
            optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
            model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
        case.phase("data")
        data = Batches(*regression(global_batch + tail), global_batch).dataset()
        model.fit(data, epochs=EPOCHS, verbose=0, shuffle=False, callbacks=[clock(case, tf.keras)])
        case.measure({f"tail {tail}": len(nonfinite(strategy, model))})
