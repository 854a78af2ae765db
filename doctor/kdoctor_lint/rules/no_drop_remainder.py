"""The rule lint.no-drop-remainder."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.flow.values import Dataset
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.batches import splits
from kdoctor_lint.rules.outside import MEASURED


def _judge(trace: Trace) -> Iterator[Hit]:
    layers = [layer for layer in trace.normalized if not layer.guarded]
    if trace.legacy or not layers:
        return
    for event in trace.fitted:
        data = event.data
        if not splits(event.home) or not isinstance(data, Dataset) or data.node is None:
            continue
        if data.source_shown and not (data.drops or data.repeated or data.truncated or event.steps):
            yield Hit(
                node=data.node,
                message="the last batch may leave a replica without examples, and the model has BatchNormalization",
            )


RULE = Rule(
    id="lint.no-drop-remainder",
    severity=Severity.WARNING,
    title="Where BatchNormalization is trained by a strategy, the last, smaller batch is dropped.",
    why="""When the last batch is too small to give every replica an example, the empty replica's batch
statistics are 0/0: Keras 3 then averages NaN into the moving statistics, without an error and with a loss that
still prints finite. Dropping the remainder avoids it; so does BatchNormalization(synchronized=True), which
counts over all replicas.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
global_batch = 64 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(global_batch).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10), keras.layers.BatchNormalization()])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
global_batch = 64 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(global_batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10), keras.layers.BatchNormalization()])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    sources=("https://keras.io/api/layers/normalization_layers/batch_normalization/", MEASURED),
    judge=_judge,
)
