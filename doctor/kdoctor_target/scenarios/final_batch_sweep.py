"""Every size of the final batch, from one example to a full batch, in three forms of the model.

Measures: ``tail 1`` and so on, how many variables are not finite after two epochs that end with such a batch.
"""

from __future__ import annotations

from typing import Any, Dict

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    EPOCHS,
    FEATURES,
    LEARNING_RATE,
    Batches,
    count_nonfinite,
    make_strategy,
    regression,
)
from kdoctor_target.training.steps import clock

PER_REPLICA = 4
MOST_SIZES = 32
"""Over more replicas than fit into this, so many sizes are tried, evenly spread; the smallest are among them."""


def plain(case: Case) -> None:
    """Without normalisation."""
    _sweep(case, normalise=False, synchronized=False)


def normalised(case: Case) -> None:
    """With BatchNormalization: the known hazard."""
    _sweep(case, normalise=True, synchronized=False)


def synchronized(case: Case) -> None:
    """With BatchNormalization that is synchronised: a guard."""
    _sweep(case, normalise=True, synchronized=True)


def _sweep(case: Case, *, normalise: bool, synchronized: bool) -> None:
    options: Dict[str, Any] = {"synchronized": True} if synchronized else {}  # an old Keras knows no such option
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    global_batch = PER_REPLICA * replicas
    case.note(global_batch=global_batch)
    every = -(-global_batch // MOST_SIZES)
    for tail in sorted({*range(1, min(replicas + 2, global_batch)), *range(1, global_batch + 1, every), global_batch}):
        case.phase("build")
        inputs, targets = regression(global_batch + tail)
        layers = tf.keras.layers
        with strategy.scope():
            middle = [layers.BatchNormalization(**options)] if normalise else []
            model = tf.keras.Sequential([layers.InputLayer((FEATURES,)), layers.Dense(4), *middle, layers.Dense(1)])
            optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
            model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
        case.phase("data")
        data = Batches(inputs, targets, global_batch).dataset()
        model.fit(data, epochs=EPOCHS, verbose=0, shuffle=False, callbacks=[clock(case, tf.keras)])
        case.measure({"tail {}".format(tail): count_nonfinite(strategy, model)})


CASES = {"plain": plain, "normalised": normalised, "synchronized": synchronized}
