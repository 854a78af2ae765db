"""CentralStorageStrategy: the variables are on one device, and every replica reads them there."""

from __future__ import annotations

from typing import Any, Tuple

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop, compare_fit
from kdoctor_target.training.replicas import Batches, describe_strategy, regression, replica_devices

STEPS = 6
PER_REPLICA = 8


def fit(case: Case) -> None:
    """``Model.fit``."""
    compare_fit(case, *_prepare(case))


def custom_loop(case: Case) -> None:
    """``strategy.run`` by hand."""
    compare_custom_loop(case, *_prepare(case))


def _prepare(case: Case) -> Tuple[Any, Batches]:
    case.phase("strategy")
    devices = replica_devices(case)
    home = tf.config.list_logical_devices("CPU")[0].name
    strategy = tf.distribute.experimental.CentralStorageStrategy(devices, home)
    describe_strategy(case, strategy)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    return strategy, Batches(inputs, targets, global_batch)


CASES = {"fit": fit, "custom-loop": custom_loop}
