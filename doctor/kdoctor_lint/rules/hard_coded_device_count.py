"""The rule lint.hard-coded-device-count."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace, has_several, literal
from kdoctor_lint.flow.values import Counted, Number
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.batches import fixed_batches, says_count


def _judge(trace: Trace) -> Iterator[Hit]:
    for node, number, use in (*_lists(trace), *_products(trace)):
        counts = [name for name in says_count(number) if name in trace.counts and name not in trace.verified]
        if counts:
            yield Hit(node=trace.counts[counts[0]], message=f"{counts[0]} is a number in the code, and {use} it")
        elif not number.names:
            yield Hit(node=node, message=f"{number.value:g} devices stand in the code, and {use} it")


def _lists(trace: Trace) -> Iterator[tuple[ast.AST, Number, str]]:
    for strategy in trace.strategies:
        devices = strategy.devices
        if not has_several(strategy) or not isinstance(devices, Counted) or "gpu" not in devices.text.lower():
            continue
        count = literal(devices.count)
        if count is not None:
            yield strategy.node, count, "the strategy's devices are made from"


def _products(trace: Trace) -> Iterator[tuple[ast.AST, Number, str]]:
    for batch in fixed_batches(trace):
        if says_count(batch.size):
            yield batch.node, batch.size, "the batch size depends on"


RULE = Rule(
    id="lint.hard-coded-device-count",
    severity=Severity.WARNING,
    title="The number of devices is asked for, not written down.",
    why="""On a machine where fewer GPUs came up, a number in the code makes batches that are too large for each
of them, or names devices that are not there; with more GPUs, some idle. strategy.num_replicas_in_sync says how
many there really are.""",
    bad="""import keras
import tensorflow as tf

NUM_GPUS = 8
strategy = tf.distribute.MirroredStrategy()
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(64 * NUM_GPUS).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
global_batch = 64 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(global_batch).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    sources=("https://www.tensorflow.org/guide/distributed_training",),
    judge=_judge,
)
