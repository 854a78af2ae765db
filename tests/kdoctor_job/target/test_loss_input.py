"""Losses that read probabilities, and what models give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers.cases import cases

pytestmark = pytest.mark.tensorflow


@cases(
    ("binary_crossentropy", None, ("binary_crossentropy",), True),
    ("binary_crossentropy", "sigmoid", ("binary_crossentropy",), False),
    (("CategoricalCrossentropy", True), None, (), False),
    (("CategoricalCrossentropy", True), "softmax", (), False),
    (("CategoricalCrossentropy", False), None, ("CategoricalCrossentropy",), True),
    ("mse", None, (), False),
    (lambda targets, outputs: outputs, None, (), False),
    (None, None, (), False),
)
def test_outputs_are_compared_with_what_the_loss_reads(
    loss: Any, activation: str | None, names: tuple[str, ...], *, is_wrong: bool
) -> None:
    import keras

    from kdoctor_job.target.loss_input import not_probabilities

    if isinstance(loss, tuple):
        loss = getattr(keras.losses, loss[0])(from_logits=loss[1])
    inputs = keras.Input((2,))
    scores = keras.layers.Dense(3, activation=activation, kernel_initializer="ones")(inputs)
    batch = np.array([[-4.0, 1.0], [3.0, 2.0]]), np.eye(3)[:2]
    for model, several in ((keras.Model(inputs, scores), loss), (keras.Model(inputs, [inputs, scores]), ["mse", loss])):
        model.compile(loss=several)
        found, wrong = not_probabilities(model, batch)
        assert (found, wrong is not None) == (names, is_wrong)
    assert wrong is None or "-3 to 5" in wrong


def test_model_that_takes_no_other_batch_size_is_not_judged() -> None:
    import keras

    from kdoctor_job.target.loss_input import not_probabilities

    model = keras.Sequential([keras.Input(batch_shape=(16, 2)), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile(loss="binary_crossentropy")
    model.call = None  # as one that raises
    assert not_probabilities(model, np.ones((16, 2))) == ((), None)
