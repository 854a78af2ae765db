"""The time of a step, without anything around it."""

from __future__ import annotations

import time
from typing import Any, Callable, List

import numpy as np

WARM_UP = 5


def seconds_of(once: Callable[[], Any], timed: int, warm_up: int = 0) -> List[float]:
    """Seconds of each call, which must wait for the device."""
    times = []
    for _ in range(warm_up + timed):
        begun = time.perf_counter()
        once()
        times.append(time.perf_counter() - begun)
    return times[warm_up:]


def median_seconds(once: Callable[[], Any]) -> float:
    """Median seconds of a call, after a warm-up; waits for a step's results."""

    def finished() -> None:
        result = once()
        if hasattr(result, "items"):  # a step's logs: reading one waits for the device
            _ = [float(value) for value in result.values() if np.size(value) == 1]

    return float(np.median(seconds_of(finished, 30, WARM_UP)))


def fastest_seconds(once: Callable[[], Any]) -> float:
    """Minimum seconds of a call: robust for short calls on a busy machine."""

    def finished() -> None:
        result = once()
        for one in result if isinstance(result, (list, tuple)) else [result]:
            np.asarray(one)  # waits for the device

    return min(seconds_of(finished, 10))


def fit_step_seconds(strategy: Any, model: Any, data: Any) -> float:
    """Median seconds of a step of ``fit``, timed by the function that ``fit`` calls for each step.

    Args:
        strategy: the strategy.
        model: a compiled model.
        data: an infinite data set of global batches.
    """
    model.fit(data, steps_per_epoch=WARM_UP, epochs=1, verbose=0)
    function = model.make_train_function() or model.train_function  # Keras 2 returns it, Keras 3 stores it
    shared = iter(strategy.experimental_distribute_dataset(data))
    return median_seconds(lambda: function(shared))
