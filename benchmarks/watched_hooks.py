"""The most that the hooks of ``kdoctor.Watch()`` take in a step, with empty caches. Part of ``make bench``.

A training fills the processor's caches with its own data between two hooks, so that a hook takes several times as
long as in a loop that only calls it. How full they are depends on the model and on the machine. Here, 64 MiB are
written before each call, which is more than the caches of most processors hold. The median of many short calls hardly
depends on other work on the machine, so that this needs no quiet one, as ``watched_fit.py`` does.

Printed are microseconds in a step, less a call of an empty method, with a 95 % interval (bootstrap). A block of short
steps adds its share once in every 50 ms. What else the Watch costs is a limited share of the time: comparisons of the
replicas 0.2 %, looks at the waiting batches 0.05 %. Exit status 1 unless the upper end is below 0.7 % of a step of
2.5 ms.
"""

import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"KDOCTOR_NO_HISTORY": "1"}

import numpy as np

import kdoctor
from kdoctor_watch import recorder

STEP_MS, LIMIT = 2.5, 0.7
CALLS, SAMPLES, INTERVAL = 400, 2000, (50, 2.5, 97.5)
LOGS = {"loss": 0.5, "accuracy": 0.1}
BLOCK_S = recorder.BLOCK_S


class Model:
    """A model that has no variables, since comparisons are not a part of this."""

    variables = non_trainable_variables = ()


class Empty:
    """A callback without work."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Do nothing."""


def watched(block_s: float) -> kdoctor.Watch:
    """A training has begun, whose blocks of steps take this long."""
    recorder.BLOCK_S = block_s
    watch = kdoctor.Watch(every=10**9, interval_s=3600.0)
    watch.set_model(Model())
    watch.on_train_begin()
    watch.on_train_batch_begin(0)
    return watch


def cold(call: Callable[[int, Any], object], prepare: Callable[[int], object] = lambda _: None) -> Any:
    """Medians of resampled calls, in microseconds, each after other memory was used."""
    other, found = np.zeros(8 * 2**20), []
    for step in range(1, CALLS + 1):
        prepare(step)
        other += 1
        began = time.perf_counter()
        call(step, LOGS)
        found.append(time.perf_counter() - began)
    return 1e6 * np.median(np.random.default_rng(1).choice(found, (SAMPLES, CALLS)), axis=-1)


def main() -> None:
    """Measure, print, and fail if the hooks may be over the limit."""
    logging.getLogger("kdoctor.watch").setLevel(logging.CRITICAL)
    floor = cold(Empty().on_train_batch_begin)
    inside, steps = watched(1e9), round(1000 * BLOCK_S / STEP_MS)
    begin, end = cold(inside.on_train_batch_begin) - floor, cold(inside.on_train_batch_end) - floor
    inside.on_train_end()
    blocks = watched(0.0)

    def report(block: int) -> None:
        for step in range(steps):
            blocks.on_train_batch_end(block * steps + step, LOGS)

    block = cold(lambda number, _: blocks.on_train_batch_begin((number + 1) * steps), report) - floor
    blocks.on_train_end()
    total = begin + end + block / steps
    parts = (("begin", begin), ("end", end), (f"a block of {steps} steps", block), ("in a step", total))
    for name, values in parts:
        middle, low, high = np.percentile(values, INTERVAL)
        print(f"     {middle:6.1f} us ({low:.1f} to {high:.1f})  {name}")
    share = np.percentile(total, INTERVAL) / (10 * STEP_MS)
    over = share[2] >= LIMIT
    print(
        f"{'OVER' if over else 'ok  '} {share[0]:.2f} % ({share[1]:.2f} to {share[2]:.2f})  of a step of {STEP_MS} ms"
    )
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
