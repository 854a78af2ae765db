"""TPUStrategy, if there is a TPU."""

from __future__ import annotations

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import describe_strategy


def custom_loop(case: Case) -> None:
    """A custom training loop with ``strategy.run`` on every core of the TPU."""
    case.phase("strategy")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:
        case.skip(f"TensorFlow finds no TPU ({type(error).__name__})")
    strategy = tf.distribute.TPUStrategy(resolver)
    describe_strategy(case, strategy)
    batches = make_batches(strategy.num_replicas_in_sync)
    compare_custom_loop(case, strategy, batches._replace(drop_remainder=True))  # a TPU requires static shapes
