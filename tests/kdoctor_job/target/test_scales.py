"""Which optimizers hide the size of the gradient, with the real Keras."""

from typing import Any

import pytest

from helpers.kdoctor_job.job_runs import trials

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def scales() -> dict[str, Any]:
    return trials("scales")


def test_only_steps_of_sgd_grow_with_the_gradient_and_variables_of_all_others(scales: dict[str, Any]) -> None:
    measured = scales["hidden"]
    assert [name for name, (hidden, _) in measured.items() if not hidden] == ["SGD"]
    assert {in_slots for _, in_slots in measured.values()} == {""}


def test_size_may_be_hidden_or_unknown(scales: dict[str, Any]) -> None:
    others = scales["others"]
    assert [name for name, why in others.items() if not why] == ["wrapped"]
