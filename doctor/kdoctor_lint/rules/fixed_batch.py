"""The rule lint.fixed-batch."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.batches import fixed_batches, says_count, says_global, says_per_replica


def _judge(trace: Trace) -> Iterator[Hit]:
    for batch in fixed_batches(trace):
        size = batch.size
        if says_count(size) or says_per_replica(size) or says_global(size):
            continue
        if not size.names & (trace.scaled | trace.divided):
            yield Hit(
                node=batch.node,
                message=f"{batch.where} gets {size.value:g}, whatever the number of replicas that share it",
            )


RULE = Rule(
    id="lint.fixed-batch",
    severity=Severity.INFO,
    title="The global batch size grows with the number of replicas, or is named as a global one.",
    why="""A batch of 32 is 32 on one device and 4 on each of eight, which seldom keeps them busy. A fixed
global batch is a sound choice where training must not change with the machine; give it a name that says so
(global_batch_size), and this is silent.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(32).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch_size = 32 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    sources=("https://keras.io/guides/distributed_training_with_tensorflow/",),
    judge=_judge,
)
