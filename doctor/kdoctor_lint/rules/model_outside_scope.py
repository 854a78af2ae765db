"""The rule lint.model-outside-scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.outside import MEASURED, stray_models


def _judge(trace: Trace) -> Iterator[Hit]:
    for model, use in stray_models(trace):
        if not model.loaded:
            yield Hit(node=model.node, message=f"the model is made outside the strategy's scope, {use}")


RULE = Rule(
    id="lint.model-outside-scope",
    severity=Severity.ERROR,
    title="A model that a strategy trains is made inside the strategy's scope.",
    why="""Variables belong to the strategy in whose scope they are made. A model that is made and compiled
outside trains silently on one device, while the others idle; one that is made outside and compiled inside fails
with an error that depends on the optimizer. Layers make their variables when they are called, so the calls
belong into the scope, too.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = keras.Sequential([keras.layers.Dense(10)])
with strategy.scope():
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
