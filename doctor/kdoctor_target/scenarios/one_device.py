"""OneDeviceStrategy: a distributed job's code on one device, to find mistakes that have nothing to do with many."""

from __future__ import annotations

from typing import Any, Tuple

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop, compare_fit
from kdoctor_target.training.replicas import Batches, describe_strategy, regression, replica_devices

STEPS = 6
GLOBAL_BATCH = 16


def fit(case: Case) -> None:
    """``Model.fit``."""
    compare_fit(case, *_prepare(case))


def custom_loop(case: Case) -> None:
    """``strategy.run`` by hand."""
    compare_custom_loop(case, *_prepare(case))


def _prepare(case: Case) -> Tuple[Any, Batches]:
    case.phase("strategy")
    strategy = tf.distribute.OneDeviceStrategy(replica_devices(case)[0])
    describe_strategy(case, strategy)
    inputs, targets = regression(STEPS * GLOBAL_BATCH)
    return strategy, Batches(inputs, targets, GLOBAL_BATCH)


CASES = {"fit": fit, "custom-loop": custom_loop}
