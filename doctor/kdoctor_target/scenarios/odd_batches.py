"""Batches that no replica, or not every replica, has an example of, beside the final one of a long data set.

Measures of ``per-replica-batch``: ``first_share`` and ``shares``, the examples that the first replica and all
replicas together get of one batch of ``PER_REPLICA``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    EPOCHS,
    Batches,
    compile_model,
    inspect_weights,
    make_model,
    make_strategy,
    regression,
    train,
)
from kdoctor_target.training.steps import clock

STEPS = 4
PER_REPLICA = 8
SHARE = 4
"""What each replica gets of the batch that was meant for it alone."""


def fewer_than_replicas(case: Case) -> None:
    """The whole data set is smaller than the number of replicas."""
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    inputs, targets = regression(max(1, replicas - 1))
    _train(case, strategy, Batches(inputs, targets, PER_REPLICA * replicas))


def first_batch_uneven(case: Case) -> None:
    """One batch is all there is, and it does not divide, though it feeds every replica."""
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    inputs, targets = regression(2 * replicas * PER_REPLICA + 1)
    _train(case, strategy, Batches(inputs, targets, len(inputs)))


def unknown_size(case: Case) -> None:
    """A generator that nobody knows the length of, without ``drop_remainder``; every replica is fed."""
    strategy = make_strategy(case)
    replicas = strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * PER_REPLICA * replicas + 2 * replicas - 1)
    batches = Batches(inputs, targets, PER_REPLICA * replicas)
    case.phase("build")
    with strategy.scope():
        model = compile_model(case, make_model(normalised=False))
    case.note(**batches.facts())
    case.phase("data")
    signature = (tf.TensorSpec((4,), tf.float32), tf.TensorSpec((1,), tf.float32))
    data = tf.data.Dataset.from_generator(lambda: zip(inputs, targets), output_signature=signature)  # noqa: B905
    history = model.fit(data.batch(batches.global_batch), epochs=EPOCHS, verbose=0, callbacks=[clock(case, tf.keras)])
    case.note(losses=history.history["loss"])
    inspect_weights(case, strategy, model)


def per_replica_batch(case: Case) -> None:
    """A batch that was meant for each replica is shared out among all: each gets less than was meant."""
    strategy = make_strategy(case)
    # It divides over the replicas, so that nothing but what it was meant for is odd.
    meant = SHARE * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * meant)
    batches = Batches(inputs, targets, meant)
    first = next(iter(strategy.experimental_distribute_dataset(batches.dataset())))[0]
    shares = [int(share.shape[0]) for share in strategy.experimental_local_results(first)]
    case.measure({"first_share": shares[0], "shares": int(np.sum(shares))})
    _train(case, strategy, batches)


def _train(case: Case, strategy: Any, batches: Batches) -> None:
    case.phase("build")
    with strategy.scope():
        model = compile_model(case, make_model(normalised=False))
    train(case, model, batches)
    inspect_weights(case, strategy, model)


CASES = {
    "fewer-than-replicas": fewer_than_replicas,
    "first-batch-uneven": first_batch_uneven,
    "unknown-size": unknown_size,
    "per-replica-batch": per_replica_batch,
}
