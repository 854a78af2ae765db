"""Which optimizers hide the size of the gradient, with the real Keras."""

from __future__ import annotations

import pytest

from helpers.kdoctor_job.job_runs import trials


@pytest.mark.tensorflow
def test_only_steps_of_sgd_grow_with_the_gradient_and_variables_of_all_others() -> None:
    measured = trials("scales")
    assert [name for name, (hidden, _) in measured["hidden"].items() if not hidden] == ["SGD"]
    assert {name: in_slots for name, (_, in_slots) in measured["hidden"].items() if in_slots} == {}
    assert len(measured["hidden"]) > 10


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["clipped", "accumulating", "of its own", "not to be copied"])
def test_size_may_be_hidden(name: str) -> None:
    assert trials("scales")["others"][name]


@pytest.mark.tensorflow
def test_wrapped_optimizer_counts() -> None:
    assert trials("scales")["others"]["wrapped"] == ""
