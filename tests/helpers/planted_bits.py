"""Devices that compute a wrong bit: plants for programs of ``same_bits``, on NumPy, TensorFlow and JAX.

It runs in the examined interpreter, too.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from kdoctor_target.training.same_bits import Comparison, Programs

ROUNDS = 8
"""Rounds of a planted comparison."""

Put = Callable[[Any, int], Any]
"""Makes an output of the framework on the device at that place from a NumPy array."""
Plant = Callable[[int], bool]
"""Whether the run of that number, counted from 0, is wrong."""


def flip(array: Any, bit: int = 0) -> Any:
    """The array with one flipped bit of its last element; bit 0 is the lowest."""
    changed = np.array(array)
    size = changed.dtype.itemsize
    changed.reshape(-1).view(f"u{size}")[-1] ^= np.array(1 << bit, f"u{size}")
    return changed


def wrong_outputs(programs: Programs, put: Put, program: str, plants: dict[int, Plant]) -> Programs:
    """The programs, of which one gives a flipped bit on some devices in some runs."""
    runs: Counter[int] = Counter()

    def run(name: str, place: int) -> Any:
        output = programs.run(name, place)
        if name != program:
            return output
        runs[place] += 1
        is_wrong = place in plants and plants[place](runs[place] - 1)
        return put(flip(np.asarray(output)), place) if is_wrong else output

    return programs._replace(run=run)


def wrong_inputs(inputs: Callable[[Any], dict[str, Any]], place: int, name: str) -> Callable[[Any], dict[str, Any]]:
    """A function that gives the inputs of each device in turn, with the wrong sign of one number of that device."""
    calls = Counter[str]()

    def given(sizes: Any) -> dict[str, Any]:
        arrays = inputs(sizes)
        calls["devices"] += 1
        return {**arrays, name: flip(arrays[name], 31)} if calls["devices"] == place + 1 else arrays

    return given


def always(_: int) -> bool:
    """Wrong each time."""
    return True


def only(*runs: int) -> Plant:
    """Wrong in these runs."""
    return lambda run: run in runs


def compared(programs: Programs, models: list[str], rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """What a whole comparison finds."""
    comparison = Comparison(programs, models)
    comparison.begin()
    for _ in range(rounds - 2):
        comparison.again()
    comparison.again(devices=True)
    return comparison.differences


def named(differences: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """The programs and devices that are known to be wrong, or may be."""
    return {(one["program"], one["device"]) for one in differences}
