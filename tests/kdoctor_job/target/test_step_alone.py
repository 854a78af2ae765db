"""Which examples the replicas of a loop get, and their gradients compared with one device."""

from typing import Any

import numpy as np
import pytest

from helpers.cases import cases

pytestmark = pytest.mark.tensorflow

X, Y = np.arange(8.0).reshape(4, 2), np.ones(4)
RATE = np.array(0.1)


@cases(
    ({0: [X[:2], Y[:2], RATE], 1: [X[2:], Y[2:], RATE]}, True, ([2, 2], [True, True, False])),
    ({1: [X[2:]], 0: [X[:2]]}, True, ([2, 2], [True])),
    ({0: [X[:3], Y], 1: [X[3:], Y]}, True, ([3, 1], [True, False])),
    ({0: [X[:1], X[:2], Y[:2]], 1: [X[1:2], X[2:], Y[2:]]}, True, ([1, 1], [True, True, False])),
    ({0: [X[:3], X[:2]], 1: [X[3:], X[2:]]}, True, ([3, 1], [True, False])),
    ({0: [X, Y], 1: [X, Y]}, False, ([], [False, False])),
    ({0: [X], 1: [X]}, True, ([], [False])),
    ({0: [Y], 1: [Y]}, True, ([4, 4], [True])),
    ({0: [X, RATE]}, False, ([4], [True, False])),
    ({0: [], 1: []}, False, ([], [])),
    ({0: [RATE], 1: [2 * RATE]}, True, ([], [False])),
)
def test_examples_of_each_replica(inputs: dict[int, list[Any]], is_distributed: Any, expected: Any) -> None:
    from kdoctor_job.target.step_alone import batch_of

    assert batch_of(inputs, is_distributed=is_distributed) == expected


def gradients(*values: float, begin: float = 1.0) -> dict[int, Any]:
    return {0: (np.array(values[:1]), np.array([begin])), 3: (np.array(values[1:]), np.array([begin]))}


TWO = [gradients(2, 0), gradients(0, 4)]
"""Of the examples of two replicas; their mean is (1, 2)."""


@cases(
    (gradients(1, 2), [gradients(1, 2)], {"stretch": 1.0, "deviation": 0.0, "of_shares": 0.0, "noise": 0.0}),
    (gradients(2, 4), [gradients(1, 2)], {"stretch": 2.0, "deviation": 1.0, "of_shares": 0.0}),
    (gradients(1, 2), TWO, {"stretch": 1.0, "deviation": 0.0}),
    (gradients(2, 4), [gradients(3, 1)], {"stretch": 1.0, "of_shares": 0.0}),
    (gradients(1, 2), [], {"not_compared": "with one replica, its batches do not divide those of the replicas"}),
    (gradients(1, 2), [{}], {"not_compared": "with one replica, it updates other variables"}),
    (gradients(1, 2), [gradients(0, 0)], {"not_compared": "the gradients of one device are zero"}),
)
def test_gradients_beside_those_of_one_device(replicas: Any, batches: Any, expected: dict[str, Any]) -> None:
    from kdoctor_job.target.step_alone import OneDevice, compared

    found = compared(replicas, OneDevice(gradients(9, 9), batches, gradients(1, 2), TWO, gradients(2, 4)))
    assert {name: found.get(name) for name in expected} == pytest.approx(expected)


def test_random_numbers_and_all_examples_at_once() -> None:
    from kdoctor_job.target.step_alone import OneDevice, compared

    alone = OneDevice(gradients(9, 9), TWO, gradients(2.2, 0), [gradients(1, 2)], gradients(3, 1))
    found = compared(gradients(1, 2), alone)
    assert found.pop("stretches") == []
    assert found == pytest.approx(
        {"stretch": 1.0, "stretch_noise": 0.1, "deviation": 0.0, "of_shares": 0.0, "of_whole": 1.0, "noise": 0.1}
    )
    alone.at_once = {}
    assert compared(gradients(1, 2), alone)["of_whole"] == pytest.approx(0.0)
    alone.shares = [gradients(0, 0), gradients(0, 0)]
    assert "zero" in compared(gradients(1, 2), alone)["not_compared"]


def test_other_values_before_the_step_are_not_compared() -> None:
    from kdoctor_job.target.step_alone import OneDevice, compared

    found = compared(gradients(1, 2), OneDevice(gradients(1, 2, begin=1.1), TWO, TWO[0], TWO))
    assert "set a seed" in found["not_compared"]


def test_variable_of_its_own_loss_is_compared_by_itself() -> None:
    from kdoctor_job.target.step_alone import OneDevice, compared

    def two_losses(large: float, small: float) -> Any:
        direction = np.arange(1.0, 9.0)
        return {0: (large * direction, np.ones(8)), 1: (small * direction, np.ones(8))}

    one = two_losses(1, 1e-3)
    found = compared(two_losses(1, 2e-3), OneDevice(one, [one], one))
    assert found["stretch"] == pytest.approx(1, abs=1e-5)
    assert found["stretches"] == pytest.approx([1, 2])
