"""The rule lint.optimizer-outside-scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.flow.values import Optimizer, Place
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.outside import MEASURED, compiled_inside, used_inside


def _judge(trace: Trace) -> Iterator[Hit]:
    optimizers = [event.optimizer for event in compiled_inside(trace) if event.optimizer is not None]
    for optimizer in (*optimizers, *used_inside(trace, Optimizer)):
        if optimizer.place is Place.OUTSIDE:
            yield Hit(
                node=optimizer.node, message="the optimizer is made outside the strategy's scope, but it is used inside"
            )


RULE = Rule(
    id="lint.optimizer-outside-scope",
    severity=Severity.ERROR,
    title="The optimizer is made inside the strategy's scope.",
    why="""An optimizer has variables of its own: its step counter, its learning rate, its moments. Made outside
the scope they are not mirrored. With Adam the first step fails (Mixing different tf.distribute.Strategy
objects); with plain SGD it happens to train, until someone changes the optimizer.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
optimizer = keras.optimizers.Adam()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer=optimizer, loss="mse")
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    optimizer = keras.optimizers.Adam()
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer=optimizer, loss="mse")
""",
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training", MEASURED),
    judge=_judge,
)
