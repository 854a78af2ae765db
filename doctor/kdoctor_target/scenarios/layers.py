"""Layers over several replicas, compared with one device: normalization, embeddings, recurrent layers, attention."""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import History, Job, compare, fit, sgd
from kdoctor_target.training.regression import FEATURES, Batches, make_batches
from kdoctor_target.training.seeded import TOKENS, dense, embedding, start, tokens

WIDTH = 4


def normalization(case: Case) -> None:
    """LayerNormalization and GroupNormalization, which use the values of one example."""

    def model() -> Any:
        layers = tf.keras.layers
        groups = [layers.GroupNormalization(2)] if hasattr(layers, "GroupNormalization") else []
        first = tf.keras.Input((FEATURES,))
        return tf.keras.Sequential([first, dense(8, 1), layers.LayerNormalization(), dense(8, 2), *groups, dense(1, 3)])

    compare(case, Job(model=model))


def embeddings(case: Case) -> None:
    """An Embedding layer, whose gradient has rows for the tokens of the batch only, with momentum."""
    optimizer = lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9)  # noqa: E731 - one use
    _sequences(case, tf.keras.layers.GlobalAveragePooling1D(), optimizer)


def recurrent(case: Case) -> None:
    """LSTM and GRU with masks."""
    keras = tf.keras

    def middle(inputs: Any) -> Any:
        weights = {"kernel_initializer": start(3), "recurrent_initializer": keras.initializers.Orthogonal(seed=4)}
        sequence = keras.layers.LSTM(WIDTH, return_sequences=True, **weights)(inputs)
        return keras.layers.GRU(WIDTH, **weights)(sequence)

    _sequences(case, middle, masked=True)


def attention(case: Case) -> None:
    """MultiHeadAttention with masks."""

    def middle(inputs: Any) -> Any:
        layers = tf.keras.layers
        attended = layers.MultiHeadAttention(2, WIDTH, kernel_initializer=start(5))(inputs, inputs)
        return layers.GlobalAveragePooling1D()(layers.Add()([inputs, attended]))

    _sequences(case, middle, masked=True)


def frozen(case: Case) -> None:
    """A layer that is frozen at first, and unfrozen before a second ``fit``; both after ``compile`` in the scope."""

    def train(model: Any, batches: Batches) -> History:
        strategy = getattr(model, "distribute_strategy", None) or tf.distribute.get_strategy()
        histories: List[History] = []
        for trainable in (False, True):
            model.layers[0].trainable = trainable
            with strategy.scope():
                model.compile(optimizer=sgd(), loss="mean_squared_error", jit_compile=False)
            before = model.layers[0].get_weights()[0]
            histories.append(fit(model, batches))
            moved = float(np.max(np.abs(model.layers[0].get_weights()[0] - before)))
            histories[-1]["moved"] = [moved]
        first, second = histories
        case.measure({"frozen_moved": first["moved"][0], "unfrozen_moved": second["moved"][0]})
        return {"loss": [*first["loss"], *second["loss"]]}

    compare(case, Job(fit=train))


def _sequences(
    case: Case, middle: Callable[[Any], Any], optimizer: Callable[[], Any] = sgd, *, masked: bool = False
) -> None:
    """A model of sequences with different lengths, which predicts one number for each."""

    def data(replicas: int) -> Batches:
        batches = make_batches(replicas)
        return batches._replace(inputs=tokens(len(batches.targets)))

    def model() -> Any:
        inputs = tf.keras.Input((TOKENS,), dtype="int32")
        return tf.keras.Model(inputs, dense(1, 2)(middle(embedding(WIDTH, masked=masked)(inputs))))

    compare(case, Job(optimizer=optimizer, model=model, data=data))


CASES = {
    "normalization": normalization,
    "embedding": embeddings,
    "recurrent": recurrent,
    "attention": attention,
    "frozen": frozen,
}
