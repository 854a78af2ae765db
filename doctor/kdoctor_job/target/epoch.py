"""One epoch of ``fit`` on the data as the job gives it, in which every example must be trained once.

The other trainings use batches that were read before. So they do not show what ``fit`` does with the data itself.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import tensorflow as tf

from kdoctor_job.target.parts import keras_of


class Epoch(NamedTuple):
    """The first batches of the data, in the form in which the job has it."""

    value: Any
    more: Dict[str, Any]
    """Arguments of ``fit`` that belong to it."""
    examples: Callable[[], Optional[int]]
    """Number of its examples, after the training; None if another pass over the data may have had other ones."""

    @property
    def named(self) -> Dict[str, Any]:
        """All that ``fit`` gets of it, by name."""
        parts: Tuple[Any, ...] = self.value if isinstance(self.value, tuple) else (self.value,)
        return {**dict(zip(("x", "y", "sample_weight"), parts)), **self.more}


def fit(model: Any, epoch: Epoch, more: Dict[str, Any]) -> None:
    """Train the model for the epoch, as the job calls ``fit``."""
    model.fit(**epoch.named, **more, epochs=1, verbose=0, shuffle=False)


def of_each_replica(dtype: Any) -> Any:
    """A variable that is 0, and to which each replica adds its own numbers. To be called in the scope."""
    return tf.Variable(
        0,
        dtype=dtype,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def count_examples(model: Any) -> Callable[[], int]:
    """Count the examples that the model's ``train_step`` gets, over all replicas. To be called in the scope."""
    count = of_each_replica(tf.int64)
    step = model.train_step

    def counting(data: Any) -> Any:
        first = tf.nest.flatten(keras_of(model).utils.unpack_x_y_sample_weight(data)[0])[0]
        # A static shape does not wait for the batch, so a step that finds the data at its end would count one.
        with tf.control_dependencies([first]):
            count.assign_add(tf.cast(tf.shape(first)[0], tf.int64))
        return step(data)

    model.train_step = counting
    return lambda: int(count.numpy())
