"""Layers over several replicas, compared with one device: normalization, embeddings, recurrent layers, attention."""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import History, Job, compare, fit, sgd
from kdoctor_target.training.regression import Batches, make_batches
from kdoctor_target.training.seeded import (
    TOKENS,
    WIDTH,
    attending,
    dense,
    embedded,
    embedding,
    normalized,
    recurrent,
    sequences,
    start,
)


def layers(
    make: Callable[[Any], Any], data: Callable[[int], Batches] = make_batches, optimizer: Callable[[], Any] = sgd
) -> Callable[[Case], None]:
    """A case for the layers of a model."""

    def run(case: Case) -> None:
        compare(case, Job(optimizer=optimizer, model=lambda: make(tf.keras), data=data))

    return run


def momentum() -> Any:
    """SGD with a variable for each weight, which a sparse gradient updates, too."""
    return tf.keras.optimizers.SGD(0.05, momentum=0.9)


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


def string_inputs(case: Case) -> None:
    """A model that looks up words itself."""

    def words(replicas: int) -> Batches:
        batches = make_batches(replicas)
        return batches._replace(inputs=np.where(batches.inputs[:, 0] > 0, "more", "less"))

    def model() -> Any:
        inputs = tf.keras.Input((), dtype="string")
        numbers = tf.keras.layers.StringLookup(vocabulary=["less", "more"])(inputs)
        return tf.keras.Model(inputs, dense(tf.keras, 1, 2)(embedding(tf.keras, 4, masked=False)(numbers)))

    compare(case, Job(model=model, data=words))


def positions(rows: Callable[[Any], Any]) -> Callable[[Case], None]:
    """A case for an Embedding of the positions, of which each batch needs all rows once, with RMSprop."""

    def model() -> Any:
        class Positions(tf.keras.layers.Layer):  # type: ignore[misc]  # Keras has no types here
            def __init__(self) -> None:
                super().__init__()
                self.table = tf.keras.layers.Embedding(TOKENS, WIDTH, embeddings_initializer=start(tf.keras, 4))
                self.table.build((None,))

            def call(self, inputs: Any) -> Any:
                return inputs + rows(self.table)

        inputs = tf.keras.Input((TOKENS,), dtype="int32")
        middle = Positions()(embedding(tf.keras, WIDTH, masked=False)(inputs))
        return tf.keras.Model(inputs, dense(tf.keras, 1, 2)(tf.keras.layers.Flatten()(middle)))

    def run(case: Case) -> None:
        compare(case, Job(optimizer=lambda: tf.keras.optimizers.RMSprop(0.01), model=model, data=sequences))

    return run


CASES = {
    "position-embedding": positions(lambda table: table(tf.range(TOKENS))),
    "position-slice": positions(lambda table: table.embeddings[:TOKENS]),
    "normalization": layers(normalized),
    "embedding": layers(embedded, sequences, momentum),
    "recurrent": layers(recurrent, sequences),
    "attention": layers(attending, sequences),
}
