"""The rule lint.compile-outside-scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace, has_several
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.outside import MEASURED


def _judge(trace: Trace) -> Iterator[Hit]:
    if trace.legacy:
        return
    for event in trace.compiled:
        model = event.model
        if model is None or model.place is not Place.INSIDE or event.place is not Place.OUTSIDE:
            continue
        if has_several(model.strategy):
            yield Hit(
                node=event.node, message="the model is made inside the strategy's scope, but it is compiled outside"
            )


RULE = Rule(
    id="lint.compile-outside-scope",
    severity=Severity.ERROR,
    title="A model is compiled inside the scope that it was made in.",
    why="""compile makes the optimizer's and the metrics' variables. Outside the scope these are not mirrored as
the model's are, and Keras 3 fails with most optimizers (Mixing different tf.distribute.Strategy objects). Keras
2 (tf_keras) trains, so nothing is said about a script that chooses it.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
model.compile(optimizer="adam", loss="mse")
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
""",
    sources=("https://keras.io/guides/distributed_training_with_tensorflow/", MEASURED),
    judge=_judge,
)
