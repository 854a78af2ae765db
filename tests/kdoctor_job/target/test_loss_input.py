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

    from kdoctor_job.target.loss_input import probabilities_read

    if isinstance(loss, tuple):
        loss = getattr(keras.losses, loss[0])(from_logits=loss[1])
    inputs = keras.Input((2,))
    scores = keras.layers.Dense(3, activation=activation, kernel_initializer="ones", name="z")(inputs)
    raw = keras.layers.Flatten(name="a")(inputs)
    batch = np.array([[-4.0, 1.0], [3.0, 2.0]]), np.eye(3)[:2]
    for outputs, losses in (
        (scores, loss), ([raw, scores], ["mse", loss]), ([scores, raw], {"a": "mse", "z": loss}),
        ({"z": scores, "a": raw}, {"z": loss}),
    ):  # fmt: skip
        model = keras.Model(inputs, outputs)
        model.compile(loss=losses)
        found = probabilities_read(model, batch, 1)
        assert (tuple(found["read_probabilities"]), bool(found.get("not_probabilities"))) == (names, is_wrong)
    assert not is_wrong or "-3 to 5" in found["not_probabilities"]


def test_losses_of_outputs_that_have_no_names_are_not_judged() -> None:
    import keras

    from kdoctor_job.target.loss_input import probabilities_read

    class Lists(keras.Model):  # type: ignore[misc] # no types
        def call(self, values: Any) -> list[Any]:
            return [values, values]

    model = Lists()
    model.compile(loss={"a": "binary_crossentropy"})
    assert probabilities_read(model, np.ones((4, 2)), 2) == {"read_probabilities": None}
