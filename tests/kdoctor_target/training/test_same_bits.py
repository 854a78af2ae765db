"""Planted flipped bits are found on the device and in the program that have them, and nothing else is."""

from typing import Any

import numpy as np
import pytest

from helpers.cases import cases
from helpers.planted_bits import ROUNDS, Plant, always, compared, named, only, wrong_outputs
from kdoctor_target.training.same_bits import Programs, read

ELEMENTS = 12
NAMES = ("sum", "product")


def numpy_programs() -> Programs:
    numbers = np.linspace(0.1, 1.3, ELEMENTS, dtype="float32")
    work = {"sum": lambda: numbers + numbers, "product": lambda: numbers * numbers}
    return Programs(
        names=NAMES,
        run=lambda name, _: work[name](),
        differs=lambda one, other: not np.array_equal(read(one), read(other)),
    )


def planted(devices: int, plants: dict[int, Plant], models: list[str] | None = None) -> list[dict[str, Any]]:
    programs = wrong_outputs(numpy_programs(), lambda array, _: array, "product", plants)
    return compared(programs, models or ["one"] * devices)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_clean_devices_agree(devices: int) -> None:
    assert planted(devices, {}) == []


@cases(
    (3, {0: always}, {0}),
    (3, {2: always}, {2}),
    (8, {5: always}, {5}),
    (5, {1: always, 4: only(3)}, {1, 4}),
    (3, {1: only(0)}, {1}),
    (3, {1: only(5)}, {1}),
    (3, {1: only(ROUNDS - 1)}, {1}),
    (2, {1: only(5)}, {1}),
    (1, {0: only(5)}, {0}),
    (1, {0: only(0)}, {0}),
    (2, {0: always}, {0, 1}),
    (2, {0: only(0)}, {0}),
    (2, {1: lambda run: run >= 4}, {1}),
    (4, {0: always, 1: always}, {0, 1, 2, 3}),
)
def test_wrong_device_is_named(devices: int, plants: dict[int, Plant], wrong: set[int]) -> None:
    assert named(planted(devices, plants)) == {("product", place) for place in wrong}


def test_minority_is_wrong_and_two_are_undecided() -> None:
    assert [one["decided"] for one in planted(3, {1: always})] == [True]
    assert [one["decided"] for one in planted(2, {1: always})] == [False, False]


def test_models_are_not_compared_with_each_other() -> None:
    assert planted(3, {2: always}, ["one", "one", "another"]) == []
    assert named(planted(4, {3: always}, ["one", "one", "another", "another"])) == {("product", 2), ("product", 3)}


def test_difference_is_described() -> None:
    (found,) = planted(1, {0: only(5)})
    expected = {"program": "product", "device": 0, "other": None, "elements": ELEMENTS, "differing": 1}
    assert found == {
        **expected, "first": ELEMENTS - 1, "rounds": 1, "found_in": 6, "repeats": False, "decided": True,
    }  # fmt: skip
    (found,) = planted(1, {0: lambda run: run >= 4})
    assert (found["rounds"], found["found_in"], found["repeats"]) == (ROUNDS - 4, 5, True)


def test_device_that_compares_incorrectly_is_compared_on_the_host() -> None:
    blind = numpy_programs()._replace(differs=lambda *_: False)
    plants = {1: lambda run: run > 0}
    assert named(compared(wrong_outputs(blind, lambda array, _: array, "sum", plants), ["one"] * 3)) == {("sum", 1)}
    false_alarm = numpy_programs()._replace(differs=lambda *_: True)
    assert {one["differing"] for one in compared(false_alarm, ["one"])} == {0}
