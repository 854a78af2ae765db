"""A final batch whose size is not divisible by the number of replicas.

TensorFlow splits a batch of n examples over R replicas in chunks of ceil(n / R), so replica r is empty
when r * ceil(n / R) >= n.

All three cases train the same model with BatchNormalization and differ in the final batch only. Each replica
normalises by the moments of its share, which differ from those of the whole batch on ordinary data. Here all replicas
get the same inputs (and different targets) in every full batch. Then the moments are equal, the gradients are linear
in the targets, and mirrored training must match one device exactly.
"""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_fit
from kdoctor_target.training.regression import PER_REPLICA, Batches, regression
from kdoctor_target.training.replicas import inspect_weights, make_strategy, train_mirrored

STEPS = 5


def fed_tail_size(replicas: int) -> int:
    """Two examples for each replica except the last, which gets one: uneven, and every replica is fed."""
    return 2 * replicas - 1


def starved_tail_size(replicas: int) -> int:
    """One example for each replica except the last, which gets none."""
    return max(replicas - 1, 1)


def fed_tail(case: Case) -> None:
    """Every replica has at least one example of the final batch."""
    strategy = make_strategy(case)
    batches = _batches(strategy.num_replicas_in_sync, fed_tail_size(strategy.num_replicas_in_sync))
    compare_fit(case, strategy, batches, normalised=True)


def starved_tail(case: Case) -> None:
    """The last replica has no example of the final batch, without a guard."""
    strategy = make_strategy(case)
    batches = _batches(strategy.num_replicas_in_sync, starved_tail_size(strategy.num_replicas_in_sync))
    inspect_weights(case, strategy, train_mirrored(case, strategy, batches, normalised=True))


def guarded(case: Case) -> None:
    """The same final batch, dropped by ``drop_remainder=True``."""
    strategy = make_strategy(case)
    batches = _batches(strategy.num_replicas_in_sync, starved_tail_size(strategy.num_replicas_in_sync))
    compare_fit(case, strategy, batches._replace(drop_remainder=True), normalised=True)


def _batches(replicas: int, tail: int) -> Batches:
    inputs, targets = _with_equal_shares(replicas)
    tail_inputs, tail_targets = regression(tail, seed=21)
    return Batches(
        np.concatenate([inputs, tail_inputs]), np.concatenate([targets, tail_targets]), PER_REPLICA * replicas
    )


def _with_equal_shares(replicas: int) -> Tuple[Any, Any]:
    """Full batches in which every replica gets the same inputs, but different targets."""
    inputs, targets = regression(STEPS * PER_REPLICA)
    shares = [inputs[start : start + PER_REPLICA] for start in range(0, len(inputs), PER_REPLICA)]
    repeated = np.concatenate([share for share in shares for _ in range(replicas)])
    goals = np.concatenate(
        [
            targets[start : start + PER_REPLICA] + np.float32(0.2 * replica)
            for start in range(0, len(inputs), PER_REPLICA)
            for replica in range(replicas)
        ]
    )
    return repeated, goals
