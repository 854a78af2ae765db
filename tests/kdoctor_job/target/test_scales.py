"""Which optimizers hide the size of the gradient, with the real Keras."""

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.tensorflow
def test_only_steps_of_sgd_grow_with_the_gradient_and_variables_of_all_others() -> None:
    measured = trials("scales")["hidden"]
    assert [name for name, (hidden, _) in measured.items() if not hidden] == ["SGD"]
    assert {in_slots for _, in_slots in measured.values()} == {""}


@pytest.mark.tensorflow
def test_size_may_be_hidden_or_unknown() -> None:
    others = trials("scales")["others"]
    assert others.pop("wrapped") == ""
    assert all(others.values())
