"""TPUStrategy, where there is a TPU."""

from __future__ import annotations

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.custom_loop import train_by_hand
from kdoctor_target.training.replicas import Batches, describe_strategy, inspect_weights, regression, train_reference

STEPS = 6
PER_REPLICA = 8


def custom_loop(case: Case) -> None:
    """``strategy.run`` by hand over every core of the TPU."""
    case.phase("strategy")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:
        case.skip("TensorFlow finds no TPU here ({})".format(type(error).__name__))
    strategy = tf.distribute.TPUStrategy(resolver)
    describe_strategy(case, strategy)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    batches = Batches(inputs, targets, global_batch, drop_remainder=True)
    reference = train_reference(case, batches, normalised=False)
    model = train_by_hand(case, strategy, batches)
    inspect_weights(case, strategy, model, reference)


CASES = {"custom-loop": custom_loop}
