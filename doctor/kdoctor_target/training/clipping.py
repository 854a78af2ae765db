"""Clipped gradients, and the alternative for Keras 3.

Measures: ``reference_way``, the largest distance that a variable moved on one device, and ``longest_way``, the largest
distance that clipped steps allow.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import Job, Training, compare
from kdoctor_target.training.families import CLIPS, LONGEST, NORM
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, STEPS


def compare_clipped(case: Case, way: str, job: Optional[Job] = None) -> None:
    """Compare SGD that clips in this way on one device with the same job, or another one, over the replicas."""
    clips = clipping_job(tf.keras, way)
    measure_way(case, way, compare(case, job or clips, clips).single)


def measure_way(case: Case, way: str, single: Training) -> None:
    """Measure how far the variables moved on one device."""
    ways = [float(np.linalg.norm(after - before)) for before, after in zip(single.started, single.model.get_weights())]
    case.measure({"reference_way": max(ways), "longest_way": EPOCHS * STEPS * LEARNING_RATE * LONGEST[way]})


def clipping_job(keras: Any, way: str) -> Job:
    """SGD that clips in this way."""
    return Job(lambda: keras.optimizers.SGD(LEARNING_RATE, **{way: CLIPS[way]}))


def clip_sum(gradients: Any) -> Any:
    """A replica's share of the clipped sum of all replicas' gradients. The optimizer adds up the replicas again."""
    replica = tf.distribute.get_replica_context()
    clipped, _ = tf.clip_by_global_norm(replica.all_reduce("sum", gradients), NORM)
    return [gradient / replica.num_replicas_in_sync for gradient in clipped]


class ClipsInStep(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types here
    """Clips the sum of the replicas' gradients."""

    def train_step(self, data: Any) -> Any:
        """Clip the gradient of the global batch."""
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss: Any = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        shares = clip_sum(tape.gradient(loss, self.trainable_variables))
        optimizer: Any = self.optimizer
        optimizer.apply_gradients(zip(shares, self.trainable_variables))
        total = tf.distribute.get_replica_context().all_reduce("sum", loss)
        for metric in self.metrics:  # the loss only: the model has no other metrics
            metric.update_state(total)
        return {metric.name: metric.result() for metric in self.metrics}
