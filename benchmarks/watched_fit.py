"""What ``kdoctor.Watch()`` costs at its defaults, as a share of a step. Part of ``make bench``.

A machine is never quiet for long, so that two trainings cannot be compared to 1 %. Here, one ``fit`` alternates: blocks
of steps with the hooks of the Watch and blocks without them, in the order on off off on. Neighbours meet the same
machine, and the trimmed mean of many differences has a confidence interval (95 %, bootstrap). This contains what the
hooks cause around them, such as caches and locks.

Some costs do not occur in each block, and are added: a comparison of the replicas (its whole step, less a usual one,
divided by the distance that the Watch chose), the processor time of the watching thread, and the processor time of the
process that reads NVML, as if they stopped the training for as long. The data passes through ``watch.data``.

Exit status 1 unless the upper end of each interval is at most 1 %. Then the cost is over it, or the machine was too
busy to tell.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "KDOCTOR_NO_HISTORY": "1", "CUDA_VISIBLE_DEVICES": "-1"}

import numpy as np

LIMIT = 0.01
BLOCK, WARM_UP, WIDTH, LAYERS = 8, 48, 256, 12
TRIMMED = 0.2
SAMPLES = 2000


@dataclass
class Steps:
    """Each step after the warm-up."""

    elapsed: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    on: list[bool] = field(default_factory=list)
    looked: list[bool] = field(default_factory=list)

    def differences(self, values: list[float]) -> tuple[np.ndarray, float]:
        """Seconds of a step with the hooks, less those of one without, for each pair of blocks; and without."""
        blocks = []
        for first in range(0, len(values) - BLOCK + 1, BLOCK):
            # The first step of a block may still see the end of the block before.
            kept = [values[step] for step in range(first + 1, first + BLOCK) if not self.looked[step]]
            blocks.append(statistics.median(kept))
        pairs = [(one, two) if self.on[BLOCK * place] else (two, one) for place, (one, two) in _pairs(blocks)]
        return np.array([on - off for on, off in pairs]), statistics.median(off for _, off in pairs)


def _pairs(blocks: list[float]) -> list[tuple[int, tuple[float, float]]]:
    return [(place, (blocks[place], blocks[place + 1])) for place in range(0, len(blocks) - 1, 2)]


def trimmed(values: np.ndarray) -> Any:
    """The mean without the largest and the smallest fifth, along the last axis."""
    cut = int(TRIMMED * values.shape[-1])
    return np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)


def resampled(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The trimmed means of samples with replacement."""
    return trimmed(generator.choice(values, (SAMPLES, len(values))))


def alternating(kdoctor: Any, steps: Steps) -> Any:
    """The callback whose hooks act in every other block."""

    class Alternating(kdoctor.Watch):
        number, looks, thread_s, began = 0, 0, 0.0, (0.0, 0.0)

        @property
        def active(self) -> bool:
            return self.number < WARM_UP or (self.number - WARM_UP) // BLOCK % 4 in (0, 3)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            now = (time.perf_counter(), time.process_time())
            if self.number > WARM_UP:
                steps.elapsed.append(now[0] - self.began[0])
                steps.processor.append(now[1] - self.began[1])
            if self.number == WARM_UP:
                self.thread_s, self.watched_s = -_thread_s(), -now[0]
            self.began = now
            if self.active:
                super().on_train_batch_begin(batch, logs)
            looks = self._session._variables._checks
            if self.number >= WARM_UP:
                steps.on.append(self.active)
                steps.looked.append(looks != self.looks)
            self.looks = looks

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if self.active:
                super().on_train_batch_end(batch, logs)
            self.number += 1

        def on_train_end(self, logs: Any = None) -> None:
            self.thread_s += _thread_s()
            self.watched_s += time.perf_counter()
            self.every = self._session._variables._every
            super().on_train_end(logs)

    return Alternating()


def _thread_s() -> float:
    thread = next(one for one in threading.enumerate() if one.name == "kdoctor-watch")
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))


def measure(package: str, replicas: int, step_ms: float, seconds: float) -> dict[str, Any]:
    """Train in this process."""
    import tensorflow as tf

    import kdoctor

    logging.getLogger("kdoctor.watch").setLevel(logging.CRITICAL)
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
    keras = importlib.import_module(package)
    with strategy.scope():
        layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
        model = keras.Sequential([keras.layers.Input((WIDTH,)), *layers, keras.layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=False)

    def data(batch: int, count: int) -> Any:
        values = np.random.default_rng(1).random((batch, WIDTH), dtype=np.float32)
        return tf.data.Dataset.from_tensors((values, values.sum(axis=1, keepdims=True))).repeat(count)

    def step_s(batch: int) -> float:
        model.fit(data(batch, 10), verbose=0)
        began = time.perf_counter()
        model.fit(data(batch, 20), verbose=0)
        return (time.perf_counter() - began) / 20

    small, large = 4 * replicas, 128 * replicas
    first, second = step_s(small), step_s(large)
    batch = small + round((step_ms / 1000 - first) / max(second - first, 1e-9) * (large - small) / replicas) * replicas
    batch = max(batch, small)
    count = WARM_UP + 1 + max(40, round(1000 * seconds / step_ms / BLOCK / 4)) * 4 * BLOCK
    steps = Steps()
    watch = alternating(kdoctor, steps)
    model.fit(watch.data(data(batch, count)), verbose=0, callbacks=[watch])
    return summary(steps, watch)


def summary(steps: Steps, watch: Any) -> dict[str, Any]:
    """Shares of a step, in percent."""
    generator = np.random.default_rng(1)
    differences, base = steps.differences(steps.elapsed)
    of_processor, processor_base = steps.differences(steps.processor)
    elapsed = np.array(steps.elapsed)
    looks = elapsed[np.array(steps.looked[: len(elapsed)])] - base
    looks_share = looks.clip(0) / watch.every / base if len(looks) else np.zeros(1)
    thread = watch.thread_s / watch.watched_s
    total = resampled(differences, generator) / base + generator.choice(looks_share, (SAMPLES, len(looks_share))).mean(1) + thread
    return {
        "step_ms": 1000 * base,
        "hooks": 100 * float(trimmed(differences)) / base,
        "hooks_between": [100 * float(one) / base for one in np.percentile(resampled(differences, generator), (2.5, 97.5))],
        "processor": 100 * float(trimmed(of_processor)) / processor_base,
        "processor_between": [
            100 * float(one) / processor_base for one in np.percentile(resampled(of_processor, generator), (2.5, 97.5))
        ],
        "looks": 100 * float(looks_share.mean()),
        "look_ms": 1000 * float(np.median(looks)) if len(looks) else None,
        "number": len(looks),
        "every": watch.every,
        "thread": 100 * thread,
        "total": 100 * float(np.mean(total)),
        "between": [100 * float(one) for one in np.percentile(total, (2.5, 97.5))],
        "pairs": len(differences),
    }


if __name__ == "__main__":
    package, replicas, step_ms, seconds = sys.argv[1:]
    print(json.dumps(measure(package, int(replicas), float(step_ms), float(seconds))))
