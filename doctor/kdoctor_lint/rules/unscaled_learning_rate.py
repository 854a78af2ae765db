"""The rule lint.unscaled-learning-rate."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Fitted, Trace, literal
from kdoctor_lint.flow.values import Dataset, Number
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.batches import splits

_SCHEDULES = frozenset({"LearningRateScheduler", "ReduceLROnPlateau"})


def _judge(trace: Trace) -> Iterator[Hit]:
    if trace.callbacks & _SCHEDULES:
        return
    for event in trace.fitted:
        optimizer = event.compiled.optimizer if event.compiled else None
        rate = literal(optimizer.rate) if optimizer and _batch_grows(event) else None
        if optimizer and rate:
            yield Hit(
                node=optimizer.node,
                message=f"the batch grows with the number of replicas, and the learning rate stays {rate.value:g}",
            )


def _batch_grows(event: Fitted) -> bool:
    size = event.data.batch if isinstance(event.data, Dataset) else event.batch_size
    return splits(event.home) and isinstance(size, Number) and size.scaled


RULE = Rule(
    id="lint.unscaled-learning-rate",
    severity=Severity.INFO,
    title="Where the batch grows with the number of replicas, the learning rate is chosen with it.",
    why="""A batch that is eight times as large makes an eighth of the steps, each of less noise. With SGD the
learning rate that fits grows about in proportion, after a warm-up; for Adam and its kin less is certain. A rate
that was tuned on one device trains more slowly on eight than it could.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch_size = 32 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer=keras.optimizers.SGD(learning_rate=0.1), loss="mse")
model.fit(dataset)
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch_size = 32 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    rate = 0.1 * strategy.num_replicas_in_sync
    model.compile(optimizer=keras.optimizers.SGD(learning_rate=rate), loss="mse")
model.fit(dataset)
""",
    sources=("https://arxiv.org/abs/1706.02677", "https://www.tensorflow.org/guide/distributed_training"),
    judge=_judge,
)
