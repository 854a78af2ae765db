"""Two trainings from one seed: shuffled data, dropout, and what it costs to insist on equality.

Measures: ``difference``, the largest of any weight between the two trainings.
"""

from __future__ import annotations

import time
from typing import Any, List, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_target.case import Case
from kdoctor_target.steps import clock
from kdoctor_target.training import EPOCHS, FEATURES, LEARNING_RATE, inspect_weights, make_strategy, regression

STEPS = 6
PER_REPLICA = 8
SEED = 7


def plain(case: Case) -> None:
    """With a seed alone."""
    _twice(case, make_strategy(case))


def insisting(case: Case) -> None:
    """With ``enable_op_determinism``, which makes TensorFlow refuse or replace what is not deterministic."""
    strategy = make_strategy(case)
    tf.config.experimental.enable_op_determinism()
    _twice(case, strategy)


def _twice(case: Case, strategy: Any) -> None:
    (one, _, _), (other, step_s, model) = _train(case, strategy), _train(case, strategy)
    gaps = [float(np.max(np.abs(a - b))) for a, b in zip(one, other)]  # noqa: B905 - Python 3.8
    case.note(step_s=step_s)
    case.measure({"difference": max(gaps)})
    inspect_weights(case, strategy, model)


def _train(case: Case, strategy: Any) -> Tuple[List[Any], float, Any]:
    case.phase("build")
    tf.keras.utils.set_random_seed(SEED)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).shuffle(len(inputs), seed=SEED).batch(global_batch)
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [layers.InputLayer((FEATURES,)), layers.Dense(16, activation="tanh"), layers.Dropout(0.3), layers.Dense(1)]
        )
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
    case.note(optimizer=type(optimizer).__name__, examples=len(inputs), global_batch=global_batch)
    case.phase("data")
    model.fit(data, epochs=1, verbose=0, callbacks=[clock(case, tf.keras)])
    begun = time.perf_counter()
    losses = model.fit(data, epochs=EPOCHS, verbose=0).history["loss"]
    case.note(losses=losses)
    return model.get_weights(), (time.perf_counter() - begun) / (EPOCHS * STEPS), model


CASES = {"seed": plain, "op-determinism": insisting}
