"""What random layers draw on each replica.

Measures: ``masks``, the number of compared steps; ``equal_masks``, those in which two replicas drew the same;
``repeated_masks``, those in which a second layer with the same seed drew the same on every replica.
"""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import make_strategy

SIDE = 8
"""Height and width of the images. Two Dropout masks of one are equal by chance once in 2 ** 64 times."""
IMAGES = 64
"""Images of a batch. Two replicas flip all of them alike by chance once in 2 ** 64 times."""
STEPS = 3
SEED = 3


def compare_masks(case: Case, make: Callable[[], Any], strategy: Any = None) -> None:
    """Compare what the layer makes of the same images on each replica, and what a second such layer makes of them.

    Args:
        case: the case.
        make: makes the layer.
        strategy: a ``MirroredStrategy`` over the requested replicas if None.
    """
    strategy = strategy or make_strategy(case)
    case.phase("build")
    images = tf.reshape(tf.range(IMAGES * SIDE * SIDE, dtype=tf.float32) + 1.0, (IMAGES, SIDE, SIDE, 1))
    images /= float(IMAGES * SIDE * SIDE)
    steps = [_steps(strategy, make, images) for _ in range(2)]
    case.phase("train")
    first, second = ([step() for _ in range(STEPS)] for step in steps)
    count_equal(case, first)
    case.measure({"repeated_masks": sum(one == other for one, other in zip(first, second))})


def count_equal(case: Case, steps: List[List[bytes]]) -> None:
    """Measure in how many steps two replicas drew the same."""
    case.measure({"masks": len(steps), "equal_masks": sum(len(set(drawn)) < len(drawn) for drawn in steps)})


def _steps(strategy: Any, make: Callable[[], Any], images: Any) -> Callable[[], List[bytes]]:
    tf.keras.utils.set_random_seed(SEED)
    with strategy.scope():
        layer = make()
        layer(images)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step() -> Any:
        return strategy.run(lambda: layer(images, training=True))

    def drawn() -> List[bytes]:
        if len(strategy.extended.worker_devices) < strategy.num_replicas_in_sync:  # the others belong to other workers
            return [each.tobytes() for each in np.split(strategy.gather(step(), axis=0).numpy(), replicas)]
        return [each.numpy().tobytes() for each in strategy.experimental_local_results(step())]

    replicas = strategy.num_replicas_in_sync
    return drawn


class ReplicaDropout(tf.keras.layers.Dropout):  # type: ignore[misc]  # TensorFlow has no types here
    """Dropout whose seed includes the index of the replica."""

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        """Drop on each replica by its own mask."""
        if not training:
            return inputs
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.cast(self.seed_generator.next(), tf.int32) + tf.stack([0, tf.cast(replica, tf.int32)])
        return tf.nn.experimental.stateless_dropout(inputs, self.rate, seed=seed)
