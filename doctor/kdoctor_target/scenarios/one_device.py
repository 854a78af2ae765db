"""OneDeviceStrategy: a distributed job's code on one device, to find mistakes that have nothing to do with many."""

from __future__ import annotations

from typing import Any, Tuple

import tensorflow as tf

from kdoctor_target.by_hand import train_by_hand
from kdoctor_target.case import Case
from kdoctor_target.training import (
    Batches,
    describe_strategy,
    inspect_weights,
    regression,
    replica_devices,
    train_mirrored,
    train_reference,
)

STEPS = 6
GLOBAL_BATCH = 16


def fit(case: Case) -> None:
    """``Model.fit``."""
    strategy, batches = _prepare(case)
    reference = train_reference(case, batches, normalised=False)
    model = train_mirrored(case, strategy, batches, normalised=False)
    inspect_weights(case, strategy, model, reference)


def custom_loop(case: Case) -> None:
    """``strategy.run`` by hand."""
    strategy, batches = _prepare(case)
    reference = train_reference(case, batches, normalised=False)
    model = train_by_hand(case, strategy, batches)
    inspect_weights(case, strategy, model, reference)


def _prepare(case: Case) -> Tuple[Any, Batches]:
    case.phase("strategy")
    strategy = tf.distribute.OneDeviceStrategy(replica_devices(case)[0])
    describe_strategy(case, strategy)
    inputs, targets = regression(STEPS * GLOBAL_BATCH)
    return strategy, Batches(inputs, targets, GLOBAL_BATCH)


CASES = {"fit": fit, "custom-loop": custom_loop}
