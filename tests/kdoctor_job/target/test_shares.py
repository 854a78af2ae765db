"""What a job computes from a whole batch, with the real TensorFlow."""

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.tensorflow
def test_what_does_not_follow_from_shares_is_of_the_whole_batch() -> None:
    of_outputs = {"each": None, "similarities": "outputs", "sum": None, "mean of some": "loss"}
    assert trials("shares") == {**of_outputs, "alike": None, "square of alike": "loss"}
