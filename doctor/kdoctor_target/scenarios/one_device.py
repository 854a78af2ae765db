"""OneDeviceStrategy: a distributed job's code on one device, for mistakes that do not depend on several replicas."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop, compare_fit
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import describe_strategy, replica_devices

BATCHES = make_batches(2)


def fit(case: Case) -> None:
    """``Model.fit``."""
    compare_fit(case, _strategy(case), BATCHES)


def custom_loop(case: Case) -> None:
    """A custom training loop with ``strategy.run``."""
    compare_custom_loop(case, _strategy(case), BATCHES)


def _strategy(case: Case) -> Any:
    case.phase("strategy")
    strategy = tf.distribute.OneDeviceStrategy(replica_devices(case)[0])
    describe_strategy(case, strategy)
    return strategy
