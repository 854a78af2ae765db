"""The rule lint.per-replica-batch."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.flow.values import Number
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.batches import fixed_batches, says_count, says_global, says_per_replica


def _judge(trace: Trace) -> Iterator[Hit]:
    for batch in fixed_batches(trace):
        size = batch.size
        if says_count(size):
            continue
        if says_per_replica(size):
            yield Hit(
                node=batch.node,
                message=f"{batch.where} takes the global batch, and gets {_shown(size)}, the size for one replica",
            )
        elif size.names & trace.scaled and not says_global(size):
            yield Hit(
                node=batch.node,
                message=f"{batch.where} gets {_shown(size)}, and not the product with the number of replicas "
                "that the script computes from it",
            )


def _shown(size: Number) -> str:
    return f"{' or '.join(sorted(size.names))} ({size.value:g})" if size.names else f"{size.value:g}"


RULE = Rule(
    id="lint.per-replica-batch",
    severity=Severity.WARNING,
    title="Datasets are batched with the global batch size.",
    why="""Model.fit and experimental_distribute_dataset cut every batch into one part a replica. A dataset that
is batched with the size for one replica leaves each replica a fraction of it: steps are dominated by overhead,
and batch statistics are of few examples.""",
    bad="""import keras
import tensorflow as tf

PER_REPLICA_BATCH = 64
strategy = tf.distribute.MirroredStrategy()
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(PER_REPLICA_BATCH).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    good="""import keras
import tensorflow as tf

PER_REPLICA_BATCH = 64
strategy = tf.distribute.MirroredStrategy()
global_batch = PER_REPLICA_BATCH * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(global_batch).prefetch(tf.data.AUTOTUNE)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    sources=(
        "https://www.tensorflow.org/tutorials/distribute/input",
        "https://keras.io/guides/distributed_training_with_tensorflow/",
    ),
    judge=_judge,
)
