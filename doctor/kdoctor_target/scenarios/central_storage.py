"""CentralStorageStrategy: the variables are on one device, and every replica reads them from there."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop, compare_fit
from kdoctor_target.training.replicas import describe_strategy, replica_devices


def fit(case: Case) -> None:
    """``Model.fit``."""
    compare_fit(case, _strategy(case))


def custom_loop(case: Case) -> None:
    """A custom training loop with ``strategy.run``."""
    compare_custom_loop(case, _strategy(case))


def _strategy(case: Case) -> Any:
    case.phase("strategy")
    devices = replica_devices(case)
    home = tf.config.list_logical_devices("CPU")[0].name
    strategy = tf.distribute.experimental.CentralStorageStrategy(devices, home)
    describe_strategy(case, strategy)
    return strategy
