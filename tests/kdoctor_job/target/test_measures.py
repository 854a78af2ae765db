"""How far weights moved, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from kdoctor_job.target.measures import stretch

START = [np.array([1.0, 2.0]), np.array([[0.5]])]


def moved(*steps: float) -> list[np.ndarray]:
    """The weights after a change of each element."""
    first, second, third = steps
    return [START[0] + np.array([first, second]), START[1] + third]


@pytest.mark.parametrize("times", [0.5, 1.0, 2.0, -1.0])
def test_stretch_is_the_factor_of_all_changes(times: float) -> None:
    assert stretch(START, moved(0.3, -0.4, 1.2), moved(0.3 * times, -0.4 * times, 1.2 * times)) == pytest.approx(times)


def test_change_in_another_direction_does_not_count() -> None:
    # (0.3, -0.4) and (0.4, 0.3) are orthogonal.
    assert stretch(START, moved(0.3, -0.4, 0), moved(0.3 + 0.4, -0.4 + 0.3, 0)) == pytest.approx(1)


@pytest.mark.parametrize("other", [moved(1, 1, 1), moved(float("nan"), 0, 0)])
def test_weights_that_do_not_move_or_are_not_finite_have_no_stretch(other: list[np.ndarray]) -> None:
    assert stretch(START, START, other) is None
    assert stretch(START, other, moved(float("nan"), 0, 0)) is None
