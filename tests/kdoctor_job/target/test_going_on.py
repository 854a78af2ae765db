"""Which step a killed run goes on after, judged by what its steps yield."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kdoctor_job.target.going_on import apart, goes_on, scale_of

WHOLE = np.array([[1, 8.0], [2, 4.0], [3, 2.0], [4, 1.0], [5, 0.5], [6, 0.25]])


@pytest.mark.parametrize(
    ("again", "killed", "expected"),
    [
        (WHOLE[3:], 4, (3, None)),
        (WHOLE[4:], 4, (4, None)),  # killed right after a save
        (WHOLE, 4, (0, None)),
        (WHOLE[3:] * [1, 1 + 1e-7], 4, (3, None)),
        (np.vstack([WHOLE[3:5], [[6, 0.26]]]), 4, (3, 6)),
        (WHOLE[3:] * [1, 1.1], 4, (None, None)),
        (WHOLE[3:, :1], 4, (None, None)),
        (WHOLE[:0], 4, (None, None)),
        (WHOLE[5:], 4, (5, None)),  # killed after a save, before it yielded
        (WHOLE[5:], 3, (None, None)),  # it cannot have saved what it had not done
    ],
)
def test_step_is_that_whose_numbers_come_next(
    again: np.ndarray, killed: int, expected: tuple[int | None, int | None]
) -> None:
    assert goes_on(WHOLE, again, killed, 1e-5) == expected


def test_differences_are_relative_to_the_scale_of_each_number() -> None:
    found = WHOLE + np.array([0, 0.008])
    assert math.isclose(apart(WHOLE, found, scale_of(WHOLE)), 0.008 / 8)
    assert apart(WHOLE, WHOLE[:2], scale_of(WHOLE)) == math.inf
    broken = np.array([[1.0, math.nan], [2.0, 3.0]])
    assert apart(broken, broken, scale_of(broken)) == 0
    assert apart(broken, np.nan_to_num(broken), scale_of(broken)) == math.inf
