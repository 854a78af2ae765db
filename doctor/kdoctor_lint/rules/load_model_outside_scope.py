"""The rule lint.load-model-outside-scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.rules.outside import MEASURED, stray_models


def _judge(trace: Trace) -> Iterator[Hit]:
    for model, use in stray_models(trace):
        if model.loaded:
            yield Hit(node=model.node, message=f"the model is loaded outside the strategy's scope, {use}")


RULE = Rule(
    id="lint.load-model-outside-scope",
    severity=Severity.ERROR,
    title="A saved model that a strategy trains further is loaded inside the strategy's scope.",
    why="""Loading makes the model's and the optimizer's variables, so it decides where they live, as building
does. A model that is loaded outside goes on training on one device, or fails when it is compiled inside.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = keras.models.load_model("epoch-10.keras")
with strategy.scope():
    model.fit(dataset)
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.models.load_model("epoch-10.keras")
model.fit(dataset)
""",
    sources=("https://www.tensorflow.org/tutorials/distribute/save_and_load", MEASURED),
    judge=_judge,
)
