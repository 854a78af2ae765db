"""Common models and data, correct or with one pitfall.

The module runs in a child process of the tests, with TensorFlow and two CPU replicas.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
CLASSES = 3
RATE = 0.004


def devices(count: int = 2) -> Any:
    """A strategy with ``count`` logical CPU devices. Call it before any other use of devices."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * count
    )
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])


def crossentropy() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def dense() -> Any:
    return keras.Sequential([keras.Input((8,)), layers.Dense(8, "relu"), layers.Dense(CLASSES)])


def cnn() -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.3),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES),
        ]
    )


def transfer() -> Any:
    """Augmentation, a frozen backbone and a new head."""
    backbone = keras.applications.MobileNet(
        input_shape=(32, 32, 3), alpha=0.25, weights=None, include_top=False, pooling="avg"
    )
    backbone.trainable = False
    inputs = keras.Input((32, 32, 3))
    augmented = layers.RandomRotation(0.1)(layers.RandomFlip()(inputs))
    features = layers.Dropout(0.2)(backbone(augmented, training=False))
    return keras.Model(inputs, layers.Dense(CLASSES)(features))


def transformer() -> Any:
    tokens = keras.Input((6,), dtype="int32")
    embedded = layers.Embedding(20, 8)(tokens)
    attended = layers.LayerNormalization()(embedded + layers.MultiHeadAttention(2, 4, dropout=0.1)(embedded, embedded))
    hidden = layers.Dense(8)(layers.Dense(16, "gelu")(attended))
    pooled = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(attended + hidden))
    return keras.Model(tokens, layers.Dense(CLASSES)(pooled))


class OwnStep(keras.Model):  # type: ignore[misc]  # Keras has no types
    """A class with a custom train step. It is not built before its first call."""

    def __init__(self, units: int = 8) -> None:
        super().__init__()
        self.hidden = layers.Dense(units, "relu")
        self.out = layers.Dense(CLASSES)

    def call(self, inputs: Any) -> Any:
        return self.out(self.hidden(inputs))

    def train_step(self, data: Any) -> Any:
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self._loss_tracker.update_state(loss * tf.distribute.get_strategy().num_replicas_in_sync)
        return {"loss": self._loss_tracker.result()}


def several() -> Any:
    """Two inputs, and two outputs with one loss each."""
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    joined = layers.Dense(8, "relu")(layers.Concatenate()([left, right]))
    outputs = {"kind": layers.Dense(CLASSES, name="kind")(joined), "size": layers.Dense(1, name="size")(joined)}
    return keras.Model({"left": left, "right": right}, outputs)


MODELS: dict[str, Callable[[], Any]] = {
    "dense": dense,
    "cnn": cnn,
    "transfer": transfer,
    "transformer": transformer,
    "own-step": OwnStep,
    "several": several,
}


def examples(name: str, count: int = 64) -> Any:
    """Inputs and targets for a model."""
    numbers = np.random.RandomState(5)
    shapes = {"cnn": (8, 8, 3), "transfer": (32, 32, 3), "dense": (8,), "own-step": (8,)}
    kinds = numbers.randint(0, CLASSES, count)
    if name == "several":
        parts = {side: numbers.rand(count, 4).astype("float32") for side in ("left", "right")}
        return parts, {"kind": kinds, "size": numbers.rand(count, 1).astype("float32")}
    if name == "transformer":
        return numbers.randint(0, 20, (count, 6)), kinds
    return numbers.rand(count, *shapes[name]).astype("float32"), kinds


def dataset(
    name: str, *, count: int = 64, batch: int = 16, prefetch: bool = True, repeat: bool = False, wait_s: float = 0.0
) -> Any:
    """The examples as a ``tf.data`` pipeline."""
    made = tf.data.Dataset.from_tensor_slices(examples(name, count)).shuffle(count, seed=7)
    made = (made.repeat() if repeat else made).batch(batch)
    if wait_s:
        made = made.map(lambda *parts: (tf.py_function(lambda: _wait(wait_s), [], []), parts)[1])
    return made.prefetch(tf.data.AUTOTUNE) if prefetch else made


def _wait(seconds: float) -> None:
    import time

    time.sleep(seconds)


def compiled(
    name: str,
    model: Any,
    *,
    rate: float | None = RATE,
    scalar: bool = False,
    ruined: bool = False,
    clipnorm: float | None = None,
    steps_per_execution: int = 1,
) -> Any:
    """The compiled model, by default with a correct loss."""

    def loss(targets: Any, outputs: Any) -> Any:
        each = keras.losses.sparse_categorical_crossentropy(targets, outputs, from_logits=True)
        return tf.math.log(-each) if ruined else tf.reduce_mean(each)

    chosen: Any = loss if scalar or ruined else crossentropy()
    model.compile(
        optimizer=keras.optimizers.Adam() if rate is None else keras.optimizers.Adam(rate, clipnorm=clipnorm),
        steps_per_execution=steps_per_execution,
        loss={"kind": chosen, "size": "mse"} if name == "several" else chosen,
        metrics=None if name in ("several", "own-step") else ["accuracy"],
    )
    return model


def in_parts(strategy: Any, name: str, part: str) -> Any:
    """A model with one part created outside the scope."""
    if part == "model":
        return compiled(name, MODELS[name]())
    if part == "compile":
        with strategy.scope():
            model = MODELS[name]()
        return compiled(name, model)
    outer = MODELS[name]()
    with strategy.scope():
        inputs = outer.inputs[0] if len(outer.inputs) == 1 else outer.input
        again = outer(inputs)
        head = layers.Dense(1, name="size")(again["kind"]) if name == "several" else layers.Dense(CLASSES)(again)
        outputs = {"kind": again["kind"], "size": head} if name == "several" else head
        return compiled(name, keras.Model(inputs, outputs))


def pitfall(strategy: Any, name: str, planted: str) -> tuple[Any, Any]:
    """Model and data with one pitfall, or without one for ``none``."""
    data: dict[str, dict[str, Any]] = {
        "odd-batch": {"batch": 15},
        "small-batch": {"batch": 8},
        "starved": {"count": 65},
        "no-prefetch": {"prefetch": False},
        "endless": {"repeat": True},
        "slow-input": {"wait_s": 0.2},
    }
    model: dict[str, dict[str, Any]] = {
        "default-rate": {"rate": None},
        "scalar-loss": {"scalar": True},
        "ruined-loss": {"ruined": True},
        "clipnorm": {"clipnorm": 1.0},
        "several-steps": {"steps_per_execution": 8},
    }
    parts = {"model-outside": "model", "compile-outside": "compile", "part-outside": "backbone"}
    made_data = dataset(name, **data.get(planted, {}))
    if planted in parts:
        return in_parts(strategy, name, parts[planted]), made_data
    with strategy.scope():
        return compiled(name, MODELS[name](), **model.get(planted, {})), made_data
