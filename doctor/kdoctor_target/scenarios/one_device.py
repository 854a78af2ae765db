"""OneDeviceStrategy: a distributed job's code on one device, for mistakes that do not depend on several replicas."""

from __future__ import annotations

from typing import Any, Tuple

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop, compare_fit
from kdoctor_target.training.regression import Batches, regression
from kdoctor_target.training.replicas import describe_strategy, replica_devices

STEPS = 6
GLOBAL_BATCH = 16


def fit(case: Case) -> None:
    """``Model.fit``."""
    compare_fit(case, *_prepare(case))


def custom_loop(case: Case) -> None:
    """A custom training loop with ``strategy.run``."""
    compare_custom_loop(case, *_prepare(case))


def _prepare(case: Case) -> Tuple[Any, Batches]:
    case.phase("strategy")
    strategy = tf.distribute.OneDeviceStrategy(replica_devices(case)[0])
    describe_strategy(case, strategy)
    return strategy, Batches(*regression(STEPS * GLOBAL_BATCH), GLOBAL_BATCH)


CASES = {"fit": fit, "custom-loop": custom_loop}
