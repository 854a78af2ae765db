"""Model classes that take arguments which Keras keeps, or not, or that override methods of Keras.

Used in a child process, with TensorFlow.
"""

import types
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from helpers.kdoctor_job.job_models import CLASSES, crossentropy

layers = keras.layers


class Settings:
    """An argument that is not a plain value."""

    units = 4


class Plain(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its attributes are named like its arguments."""

    def __init__(self, units: int, scale: float = 1.0) -> None:
        super().__init__()
        self.units, self.scale = units, scale
        self.hidden, self.out = layers.Dense(units, "relu"), layers.Dense(CLASSES)

    def call(self, inputs: Any) -> Any:
        return self.out(self.hidden(inputs)) * self.scale


class Early(Plain):
    """One of its variables is there before the first batch makes the others."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.factor = self.add_weight(shape=(), initializer="ones", trainable=False, name="factor")

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) * self.factor


def _early() -> Any:
    model = Early(4)
    model.build((None, 8))  # Keras warns, and calls the model built
    return model


class Complex(Plain):
    """Its argument is an object."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.units)
        self.settings = settings


class Raising(Plain):
    """Its call raises inside NumPy."""

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) + np.ones(3)[7]


class Strict(layers.Layer):  # type: ignore[misc, name-defined]  # Keras has no types
    """A layer that takes no arguments of Keras."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.inner = layers.Dense(units)

    def call(self, inputs: Any) -> Any:
        return self.inner(inputs)


def _unregistered() -> Any:
    class Penalty(keras.regularizers.Regularizer):  # type: ignore[misc]  # Keras has no types
        def __call__(self, weights: Any) -> Any:
            return 0.1 * keras.ops.sum(weights)

        def get_config(self) -> dict[str, Any]:
            return {}

    return keras.Sequential([keras.Input((8,)), layers.Dense(CLASSES, kernel_regularizer=Penalty())])


def _of_no_module() -> Any:
    """A function that ``exec`` made."""
    function = types.FunctionType((lambda inputs: 2 * inputs).__code__, {})
    return keras.Sequential([keras.Input((8,)), layers.Lambda(function), layers.Dense(CLASSES)])


MAKERS: dict[str, Callable[[], Any]] = {
    "early": _early,
    "complex": lambda: Complex(Settings()),
    "raising": lambda: Raising(4),
    "strict": lambda: keras.Sequential([keras.Input((8,)), Strict(CLASSES)]),
    "unregistered": _unregistered,
    "of no module": _of_no_module,
}


class WithoutCall(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Trains a part in ``train_step``, as the autoencoders of keras.io do."""

    def __init__(self) -> None:
        super().__init__()
        self.part = keras.Sequential([keras.Input((8,)), layers.Dense(CLASSES)])

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.part(data[0]) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class WithCall(WithoutCall):
    """The same with the call that a strategy needs. Its gradients are summed."""

    def call(self, inputs: Any) -> Any:
        return self.part(inputs)


def without_call(kind: Any = WithoutCall) -> Any:
    """A model that ``fit`` trains on one device and refuses on several replicas."""
    model = kind()
    model.compile(keras.optimizers.SGD(0.05))
    return model


class CompilesItself(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its ``compile`` has other arguments than that of Keras."""

    def compile(self, rate: float = 0.01) -> None:
        super().compile(keras.optimizers.RMSprop(rate), crossentropy())


def _named(rows: Any, targets: Any) -> Any:
    return {"rows": rows}, targets


class NamesInputs(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its ``fit`` and ``evaluate`` change the data, without which calling it raises an error."""

    def __init__(self) -> None:
        super().__init__()
        self.out = layers.Dense(CLASSES)

    def call(self, inputs: Any) -> Any:
        return self.out(inputs["rows"])

    def fit(self, x: Any, **named: Any) -> Any:
        return super().fit(x.map(_named), **named)

    def evaluate(self, x: Any, **named: Any) -> Any:
        return super().evaluate(x.map(_named), **named)


class TrainsItself(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Its ``fit`` has a loop, and no more arguments."""

    def fit(self, data: Any, epochs: int = 1) -> None:
        for rows, targets in data.repeat(epochs):
            self.train_on_batch(rows, targets)


def of_strings() -> Any:
    """A model whose inputs are texts."""
    texts = layers.TextVectorization(max_tokens=10, output_sequence_length=4)
    texts.adapt(["a b", "c"])
    parts = [keras.Input((), dtype="string"), texts, layers.Embedding(10, 4), layers.Flatten(), layers.Dense(1)]
    model = keras.Sequential(parts)
    model.compile(keras.optimizers.SGD(0.05), "mean_squared_error")
    return model


def of_two_inputs() -> Any:
    """A model whose inputs are a list."""
    pair = [keras.Input((8,)), keras.Input((8,))]
    return keras.Model(pair, layers.Dense(CLASSES)(layers.add(pair)))
