"""The table of optimizers, compared with the steps of Keras's."""

from __future__ import annotations

import pytest

from helpers.kdoctor_job.job_runs import trials
from kdoctor_job.target.scales import INVARIANT, PARTLY, PROPORTIONAL, SCALES, hides_scale

EQUAL = 0.02
"""Largest relative difference that counts as equal: RMSprop's first step divides by a small number plus epsilon."""


def _kind(from_the_same: float, from_times_four: float) -> str:
    if from_the_same < EQUAL:
        return INVARIANT
    return PROPORTIONAL if from_times_four < EQUAL else PARTLY


@pytest.mark.tensorflow
def test_table_has_the_measured_scale_of_every_optimizer_of_keras() -> None:
    measured = trials("scales")
    assert {name: _kind(*found) for name, found in measured.items()} == {
        name: scale.kind for name, scale in SCALES.items()
    }


def _optimizer(name: str, package: str = "keras") -> object:
    return type(name, (), {"__module__": f"{package}.src.optimizers"})()


def test_proportional_optimizer_of_keras_shows_the_scale() -> None:
    assert hides_scale(_optimizer("SGD"), clips=False) == ""
    assert hides_scale(_optimizer("SGD", "tf_keras"), clips=False) == ""


def test_clipping_hides_the_scale() -> None:
    assert hides_scale(_optimizer("SGD"), clips=True)


@pytest.mark.parametrize(("name", "package"), [("Adam", "keras"), ("Adagrad", "keras"), ("SGD", "jobs")])
def test_other_optimizers_hide_the_scale(name: str, package: str) -> None:
    assert hides_scale(_optimizer(name, package), clips=False)


def test_wrapped_optimizer_counts() -> None:
    wrapper = _optimizer("LossScaleOptimizer")
    wrapper.inner_optimizer = _optimizer("SGD")  # type: ignore[attr-defined]
    assert hides_scale(wrapper, clips=False) == ""
