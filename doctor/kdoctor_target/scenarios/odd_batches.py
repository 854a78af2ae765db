"""Batches that give some or all replicas no example, other than the final batch of a long data set.

Measures of ``per-replica-batch``: ``first_share`` and ``shares``, the examples of one batch that the first replica and
all replicas together get.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import sgd
from kdoctor_target.training.numpy_model import measure_values
from kdoctor_target.training.regression import EPOCHS, PER_REPLICA, Batches, make_batches, regression
from kdoctor_target.training.replicas import compiled_model, inspect_weights, make_model, make_strategy, train
from kdoctor_target.training.steps import clock

STEPS = 4
SHARE = 4
"""Examples that each replica gets of a batch that was meant for one replica."""


def fewer_than_replicas(case: Case) -> None:
    """The whole data set is smaller than the number of replicas."""
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    _train(case, strategy, Batches(*regression(max(1, replicas - 1)), PER_REPLICA * replicas))


def first_batch_uneven(case: Case) -> None:
    """There is one batch, which is not divisible by the number of replicas, but feeds every replica."""
    strategy = make_strategy(case)
    examples = 2 * strategy.num_replicas_in_sync * PER_REPLICA + 1
    _train(case, strategy, Batches(*regression(examples), examples))


def unknown_size(case: Case) -> None:
    """A generator of unknown length, without ``drop_remainder``; every replica is fed."""
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    batches = make_batches(replicas, STEPS, tail=2 * replicas - 1)
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case)
    case.note(**batches.facts())
    case.phase("data")
    signature = (tf.TensorSpec((4,), tf.float32), tf.TensorSpec((1,), tf.float32))
    data = tf.data.Dataset.from_generator(lambda: zip(batches.inputs, batches.targets), output_signature=signature)
    history = model.fit(data.batch(batches.global_batch), epochs=EPOCHS, verbose=0, callbacks=[clock(case, tf.keras)])
    case.note(losses=history.history["loss"])
    inspect_weights(case, strategy, model)


class Examples(tf.keras.metrics.Sum):  # type: ignore[misc]  # TensorFlow has no types here
    """Counts the examples that are trained."""

    def update_state(self, y_true: Any, *_: Any, **__: Any) -> Any:
        """Add the examples of a batch."""
        return super().update_state(tf.ones_like(y_true))


def finite_generator(case: Case) -> None:
    """A Python generator of eight batches, which ``fit`` gets itself."""
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync, 2 * STEPS)
    case.phase("build")
    with strategy.scope():
        model = make_model()
        counter = Examples(name="examples")
        model.compile(optimizer=sgd(), loss="mean_squared_error", metrics=[counter], jit_compile=False)
    case.note(optimizer="SGD", **batches.facts())
    case.phase("train")
    examples, size = len(batches.inputs), batches.global_batch
    cut = (slice(start, start + size) for start in range(0, examples, size))
    history = model.fit(((batches.inputs[part], batches.targets[part]) for part in cut), verbose=0).history
    measure_values(case, {"number of examples": history["examples"][0]}, float(examples))


def per_replica_batch(case: Case) -> None:
    """A per-replica batch size is used as the global one: each replica gets fewer examples than intended."""
    strategy = make_strategy(case)
    # Divisible by the number of replicas, so that only its intended use is unusual.
    meant = SHARE * strategy.num_replicas_in_sync
    batches = Batches(*regression(STEPS * meant), meant)
    first = next(iter(strategy.experimental_distribute_dataset(batches.dataset())))[0]
    shares = [int(share.shape[0]) for share in strategy.experimental_local_results(first)]
    case.measure({"first_share": shares[0], "shares": int(np.sum(shares))})
    _train(case, strategy, batches)


def _train(case: Case, strategy: Any, batches: Batches) -> None:
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case)
    train(case, model, batches)
    inspect_weights(case, strategy, model)
