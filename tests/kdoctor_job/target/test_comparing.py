"""Comparisons with one device, with the real TensorFlow."""

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.tensorflow
def test_difference_is_kept_if_a_metric_is_zero_and_draws_are_alike() -> None:
    found = trials("evaluations")
    on_replicas, alone = found["drawn"]
    assert (found["kept"], on_replicas) == ({"f1": 0.0, "loss": 2.0}, alone)
    assert found["device"] == "CPU:1"  # that of the first replica, as another may be in use
