"""What a job computes from a whole batch, with the real TensorFlow."""

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.tensorflow
def test_outputs_without_a_row_for_each_example_are_of_the_whole_batch() -> None:
    assert trials("shares") == {"each": None, "similarities": "outputs", "one number": "outputs"}
