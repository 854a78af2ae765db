"""How far weights moved, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from kdoctor_job.target.measures import compare, named_as, stretch

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


@pytest.mark.parametrize("noise", [0.02, 0.0001])
def test_small_difference_that_the_last_bit_explains_is_equal(noise: float) -> None:
    reference, other = moved(1, 1, 1), [[one] for one in moved(1.05, 1.05, 1)]
    found = compare(["kernel", "bias"], START, reference, other, [moved(1 + noise, 1 + noise, 1)])
    assert found is not None
    is_noise = noise == 0.02
    assert found.rounded == (["kernel"] if is_noise else [])
    assert found.deviation == pytest.approx(0 if is_noise else 0.05)
    assert found.rounded_share == 0  # it is clear that nothing is twice as large


def test_variable_that_rounding_decides_shows_nothing() -> None:
    found = compare(
        ["kernel", "bias"], START, moved(1, 1, 1), [[one] for one in moved(1.5, 1.5, 1)], [moved(0.9, 0.9, 1)]
    )
    assert found is not None
    assert found.rounded == ["kernel"]
    assert found.rounded_share == pytest.approx(2 / 3)


def test_large_change_of_a_state_does_not_hide_a_difference() -> None:
    start, reference = [np.zeros(2), np.array([1e9])], [np.array([1.0, 1.0]), np.array([2.0])]
    found = compare(
        ["kernel", "best"], start, reference, [[np.array([1.1, 1.1])], reference[1:]], [], kinds=["", "best"]
    )
    assert found is not None
    assert found.deviation == pytest.approx(0.1)


def test_numbers_of_names_that_keras_makes_up_are_compared() -> None:
    assert named_as({"auc_3": 1, "auc_2": 2, "loss": 3}, {"loss": 0, "auc_1": 0, "auc": 0}) == {
        "auc": 2,
        "auc_1": 1,
        "loss": 3,
    }
    assert named_as({"top_5": 1}, {"hits": 0}) == {"top_5": 1}
