"""Options of optimizers: weight decay, moving averages, schedules of the learning rate, and loss scales.

Measures: see ``kdoctor_target.training.optimizers``.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.families import optimizer
from kdoctor_target.training.optimizers import cases_of, compare_state, one_epoch
from kdoctor_target.training.regression import Batches

schedules: Any = tf.keras.optimizers.schedules

OPTIONS = {
    "weight-decay": optimizer("SGD", 0.1, weight_decay=0.1),
    "ema": optimizer("SGD", 0.1, use_ema=True, ema_momentum=0.8),
    "ema-overwrite": optimizer("SGD", 0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=5),
    "exponential-decay": optimizer("SGD", schedules.ExponentialDecay(0.2, decay_steps=4, decay_rate=0.5)),
    "piecewise-decay": optimizer("SGD", schedules.PiecewiseConstantDecay([3, 7], [0.2, 0.1, 0.02])),
    "cosine-decay": optimizer("Adam", schedules.CosineDecay(0.001, 12, warmup_target=0.02, warmup_steps=4)),
}


def loss_scale(case: Case) -> None:
    """A loss scale that doubles after every four steps."""
    compare_state(case, lambda: _scaled(1024.0, 4))


def overflow(case: Case) -> None:
    """A loss scale with which the gradient of one replica overflows in the second step, which must be left out."""
    compare_state(case, lambda: _scaled(2.0**100, 1000), data=_one_large_target)


def _scaled(scale: float, growth_steps: int) -> Any:
    keras = tf.keras.optimizers if hasattr(tf.keras.optimizers, "LossScaleOptimizer") else tf.keras.mixed_precision
    inner = tf.keras.optimizers.SGD(0.1)
    return keras.LossScaleOptimizer(inner, initial_scale=scale, dynamic_growth_steps=growth_steps)


def _one_large_target(replicas: int) -> Batches:
    """The last example of the second batch belongs to the last replica. Its gradient is about 1e39 with this scale."""
    batches = one_epoch(replicas)
    batches.targets[2 * batches.global_batch - 1] = 1e10
    return batches


CASES = {**cases_of(compare_state, OPTIONS), "loss-scale": loss_scale, "overflow-on-one-replica": overflow}
