"""Copies that are trained more than once, with the real TensorFlow."""

from typing import Any

import pytest

from helpers.kdoctor_job.job_runs import trials

pytestmark = [pytest.mark.tensorflow, pytest.mark.smoke_full]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return trials("again")


def test_copy_is_trained_again_as_a_new_one(found: dict[str, Any]) -> None:
    assert found["kept"] == [True, True]
    on_replicas, alone = found["apart"]
    assert alone == 0
    assert on_replicas < 0.001  # a quarter of Adam's step: rounding of the bias before BatchNormalization
    assert ["allow more time" in reason for reason in found["spent"]] == [True, True]


def test_slots_of_the_optimizer_show_a_gradient_that_is_too_large(found: dict[str, Any]) -> None:
    assert found["slots"] == [True, False, False]


def test_job_on_another_strategy_of_the_process_is_compared() -> None:
    done = trials("strategies")
    assert (done["findings"].keys() - {"job.input-bound"}, done["unknown"]) == (set(), {})
