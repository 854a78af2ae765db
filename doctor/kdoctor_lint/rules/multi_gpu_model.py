"""The rule lint.multi-gpu-model."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.names import MULTI_GPU_MODEL


def _judge(trace: Trace) -> Iterator[Hit]:
    calls = [called for called in trace.calls if MULTI_GPU_MODEL.match(called.name)]
    for called in calls or trace.imports:
        yield Hit(node=called.node, message="multi_gpu_model was removed from Keras in 2020")


RULE = Rule(
    id="lint.multi-gpu-model",
    severity=Severity.ERROR,
    title="Several GPUs are used through tf.distribute, not through multi_gpu_model.",
    why="""multi_gpu_model is gone since TensorFlow 2.4: its import fails. MirroredStrategy takes its place,
with the model made inside the scope and without a copy of the model for saving.""",
    bad="""import keras

model = keras.Sequential([keras.layers.Dense(10)])
parallel = keras.utils.multi_gpu_model(model, gpus=4)
parallel.compile(optimizer="adam", loss="mse")
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
""",
    sources=("https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",),
    judge=_judge,
)
