"""A final batch that does not divide evenly over the replicas.

TensorFlow cuts a batch of n examples over R replicas in chunks of ceil(n / R), so replica r is empty
when r * ceil(n / R) >= n.

All three cases train the same model with BatchNormalization and differ in the final batch alone. Each
replica normalises by the moments of its own examples, which would part it from one device on any
data. So in every full batch all replicas get the same inputs (and different targets): then the moments
of each share are those of the whole batch, and mirrored training must equal one device exactly. That
holds for the gradients too, for they are linear in the targets' part once the moments are the same.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    Batches,
    Reference,
    inspect_weights,
    make_strategy,
    regression,
    train_mirrored,
    train_reference,
)

STEPS = 5
PER_REPLICA = 8


def fed_tail_size(replicas: int) -> int:
    """Two examples for each replica but the last, which gets one: uneven, and every replica is fed."""
    return 2 * replicas - 1


def starved_tail_size(replicas: int) -> int:
    """One example for each replica but the last, which gets none."""
    return max(replicas - 1, 1)


def fed_tail(case: Case) -> None:
    """Every replica has at least one example of the final batch."""
    strategy = make_strategy(case)
    batches = _batches(strategy.num_replicas_in_sync, fed_tail_size(strategy.num_replicas_in_sync))
    reference = train_reference(case, batches, normalised=True)
    _train(case, strategy, batches, reference)


def starved_tail(case: Case) -> None:
    """The last replica has no example of the final batch, and nothing guards against it."""
    strategy = make_strategy(case)
    batches = _batches(strategy.num_replicas_in_sync, starved_tail_size(strategy.num_replicas_in_sync))
    _train(case, strategy, batches, None)


def guarded(case: Case) -> None:
    """The same final batch, left out by ``drop_remainder=True``."""
    strategy = make_strategy(case)
    batches = _batches(strategy.num_replicas_in_sync, starved_tail_size(strategy.num_replicas_in_sync))
    batches = batches._replace(drop_remainder=True)
    reference = train_reference(case, batches, normalised=True)
    _train(case, strategy, batches, reference)


def _train(case: Case, strategy: Any, batches: Batches, reference: Optional[Reference]) -> None:
    model = train_mirrored(case, strategy, batches, normalised=True)
    inspect_weights(case, strategy, model, reference)


def _batches(replicas: int, tail: int) -> Batches:
    inputs, targets = _with_equal_shares(replicas)
    tail_inputs, tail_targets = regression(tail, seed=21)
    return Batches(
        np.concatenate([inputs, tail_inputs]), np.concatenate([targets, tail_targets]), PER_REPLICA * replicas
    )


def _with_equal_shares(replicas: int) -> Tuple[Any, Any]:
    """Full batches in which every replica gets the same inputs, but targets of its own."""
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


CASES = {"fed-tail": fed_tail, "starved-tail": starved_tail, "guarded": guarded}
