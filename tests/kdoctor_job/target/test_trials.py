"""Copies that are trained more than once, with the real TensorFlow."""

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.smoke_full
@pytest.mark.tensorflow
def test_copy_is_trained_again_as_a_new_one() -> None:
    found = trials("again")
    assert found["kept"] == [True, True]
    on_replicas, alone = found["apart"]
    assert alone == 0
    assert on_replicas < 0.001  # a quarter of Adam's step: rounding of the bias before BatchNormalization


@pytest.mark.smoke_full
@pytest.mark.tensorflow
def test_slots_of_the_optimizer_show_a_gradient_that_is_too_large() -> None:
    assert trials("again")["slots"] == [True, False, False]
