"""How long a step takes, where nothing but the step is timed."""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np

WARM_UP = 5


def median_seconds(once: Callable[[], Any], timed: int = 30) -> float:
    """Median seconds of a call, after some that are not counted; a step's numbers are waited for."""
    times = []
    for _ in range(timed + WARM_UP):
        begun = time.perf_counter()
        result = once()
        if hasattr(result, "items"):  # a step's logs: to read one waits for the device
            _ = [float(value) for value in result.values() if np.size(value) == 1]
        times.append(time.perf_counter() - begun)
    return float(np.median(times[WARM_UP:]))


def fastest_seconds(once: Callable[[], Any], timed: int = 10) -> float:
    """Least seconds of a call: for what is too short for a median on a machine that does other things, too."""
    times = []
    for _ in range(timed):
        begun = time.perf_counter()
        result = once()
        for one in result if isinstance(result, (list, tuple)) else [result]:
            np.asarray(one)  # waits for the device
        times.append(time.perf_counter() - begun)
    return min(times)


def fit_step_seconds(strategy: Any, model: Any, data: Any) -> float:
    """Median seconds of a step of ``fit``, by the function that ``fit`` calls for each.

    Args:
        strategy: the strategy.
        model: a compiled model.
        data: global batches without end.
    """
    model.fit(data, steps_per_epoch=WARM_UP, epochs=1, verbose=0)
    function = model.make_train_function()  # Keras 2 returns it, Keras 3 keeps it
    function = function or model.train_function
    shared = iter(strategy.experimental_distribute_dataset(data))
    return median_seconds(lambda: function(shared))
