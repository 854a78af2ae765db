"""Which variables are others after a job goes on."""

import numpy as np

from kdoctor_job.target.states import apart


def test_large_change_of_one_kind_does_not_hide_a_difference_of_another() -> None:
    before = {"dense/kernel": np.zeros(2), "model/best": np.array(1e9)}
    wanted = {"dense/kernel": np.ones(2), "model/best": np.array(2.0)}
    assert apart(before, wanted, wanted, wanted) == []
    assert apart(before, wanted, wanted, {**wanted, "dense/kernel": np.full(2, 1.5)}) == ["dense/kernel"]
