"""Schedules, and the steps in which they give 0."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.cases import cases

pytestmark = pytest.mark.tensorflow


@cases(
    (("CosineDecay", 0.1, 5), {"scheduled_steps": 100, "zero_from": 9}),
    (("CosineDecay", 0.1, 100), {"scheduled_steps": 100}),
    (("CosineDecay", 0.1, 100, 0.01), {"scheduled_steps": 100}),
    (("PolynomialDecay", 0.1, 30, 0.0, 3.0), {"scheduled_steps": 100, "zero_from": 31}),
    (("CosineDecay", 0.0, 60, 0.0, "CosineDecay", 0.1, 40), {"scheduled_steps": 100}),
    (("ExponentialDecay", 0.1, 100, 0.9), {"scheduled_steps": 100}),
    (None, {}),
)
def test_step_from_which_the_rate_is_0(schedule: tuple[Any, ...] | None, found: dict[str, int]) -> None:
    import keras

    from kdoctor_job.target.rates import of_schedule

    rate = getattr(keras.optimizers.schedules, schedule[0])(*schedule[1:]) if schedule else 0.1
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse")
    assert of_schedule(model, 100) == found
