"""What ``kdoctor.Watch()`` costs at its defaults, as a share of a step. Part of ``make bench``.

Two trainings on a machine that is in use differ by more than 1 %. Here, one ``fit`` alternates blocks of steps with the
hooks of the Watch and blocks without them, in the order on off off on. Neighbours meet the same machine, and the
trimmed mean of many differences has a confidence interval (95 %, bootstrap). It contains what the hooks cause around
them, such as cold caches.

The processor time of the thread that trains decides: it does not contain the waiting for other programs, and a step
gets longer by at most this time. The elapsed time of a step is compared, too, with a wider interval. Added is what does
not happen in each block:

- what the hooks do in Keras' other thread,
- the elapsed time of a comparison of the replicas, divided by the distance between two that the Watch chose,
- the processor time of the watching thread, and of the process that reads NVML (a simulated one with 8 GPUs), as if
  both stopped the training for as long.

The step is the fastest tenth of those without hooks, since a busy machine makes steps longer and shares smaller. The
data passes through ``watch.data``. Exit status 1 unless the upper end of the interval is at most 1 %.
"""

import argparse
import importlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "KDOCTOR_NO_HISTORY": "1", "CUDA_VISIBLE_DEVICES": "-1"}

import numpy as np
import psutil
import tensorflow as tf

from kdoctor.facts import GpuSampling
from kdoctor_watch.callback import Watch
from kdoctor_watch.companion import Companion

LIMIT = 1.0
BLOCK_S, WARM_UP, WIDTH, LAYERS = 0.3, 48, 256, 4
"""A block of steps takes several times as long as the Watch's own, so that it contains its share of what they cost."""
SAMPLES, INTERVAL = 2000, (2.5, 97.5)
TESTS = Path(__file__).parents[1] / "tests"


@dataclass
class Steps:
    """The steps after the warm-up."""

    block: int
    """Steps of a block with the hooks or without them."""
    elapsed: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Of the thread that trains."""
    other: list[float] = field(default_factory=list)
    """Processor time of the hook at the end of a step, where Keras calls it in another thread."""
    looks: list[float] = field(default_factory=list)
    """Elapsed time of the hooks that compare the replicas. They compute on threads of the backend, too."""
    on: list[bool] = field(default_factory=list)
    looked: list[bool] = field(default_factory=list)

    def differences(self, values: list[float]) -> Any:
        """Seconds of a step with the hooks, less those of one without, for each two neighbouring blocks."""
        block = self.block
        # The first step of a block may still contain the end of the block before.
        blocks = [range(first + 1, first + block) for first in range(0, len(values) - block + 1, block)]
        means = [np.mean([values[step] for step in block if not self.looked[step]]) for block in blocks]
        signs = [1 if self.on[block * place] else -1 for place in range(len(means))]
        return np.array([signs[place] * (means[place] - means[place + 1]) for place in range(0, len(means) - 1, 2)])


def trimmed(values: np.ndarray) -> Any:
    """The mean without the largest and the smallest fifth, along the last axis."""
    cut = values.shape[-1] // 5
    return np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)


def resampled(values: np.ndarray) -> Any:
    """The trimmed means of samples with replacement."""
    return (
        trimmed(np.random.default_rng(1).choice(values, (SAMPLES, len(values)))) if len(values) else np.zeros(SAMPLES)
    )


class Alternating(Watch):
    """The callback, whose hooks act in every other block."""

    number = compared = every = 0
    thread_s = watched_s = 0.0
    began = (0.0, 0.0)

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps

    @property
    def active(self) -> bool:
        """Whether the hooks act in the current step."""
        return self.number < WARM_UP or (self.number - WARM_UP) // self.steps.block % 4 in {0, 3}

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Measure the step before, and act in every other block."""
        now = (time.perf_counter(), time.thread_time())
        self.number = batch
        if batch > WARM_UP:
            self.steps.elapsed.append(now[0] - self.began[0])
            self.steps.processor.append(now[1] - self.began[1])
        elif batch == WARM_UP:
            self.thread_s, self.watched_s = -_thread_s(), -now[0]
            self.compared = self._session._variables._checks  # type: ignore[union-attr]  # noqa: SLF001
        self.began = now
        if self.active:
            super().on_train_batch_begin(batch, logs)
        if batch >= WARM_UP:
            self._note(time.perf_counter() - now[0])

    def _note(self, seconds: float) -> None:
        variables = self._session._variables  # type: ignore[union-attr]  # noqa: SLF001
        self.steps.on.append(self.active)
        self.steps.looked.append(variables._checks != self.compared)  # noqa: SLF001
        if self.steps.looked[-1]:
            self.steps.looks.append(seconds)
        self.compared, self.every = variables._checks, variables._every  # noqa: SLF001

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Act in every other block."""
        began = time.thread_time()
        if self.active:
            super().on_train_batch_end(batch, logs)
            if threading.current_thread() is not threading.main_thread():
                self.steps.other.append(time.thread_time() - began)

    def on_train_end(self, logs: Any = None) -> None:
        """Measure the thread."""
        self.thread_s += _thread_s()
        self.watched_s += time.perf_counter()
        super().on_train_end(logs)


def _thread_s() -> float:
    thread = next(one for one in threading.enumerate() if one.name == "kdoctor-watch")
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))


def measure(package: str, replicas: int, step_ms: float, pairs: int) -> dict[str, Any]:
    """Train in this process."""
    logging.getLogger("kdoctor.watch").setLevel(logging.CRITICAL)
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    keras = importlib.import_module(package)
    with tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)]).scope():
        layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
        model = keras.Sequential([keras.layers.Input((WIDTH,)), *layers, keras.layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=False)

    def data(batch: int, count: int) -> Any:
        values = np.random.default_rng(1).random((batch, WIDTH), dtype=np.float32)
        return tf.data.Dataset.from_tensors((values, values.sum(axis=1, keepdims=True))).repeat(count)

    class Fastest(keras.callbacks.Callback):  # type: ignore[name-defined, misc]
        began, seconds = 0.0, 1e9

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - as Keras calls it
            now = time.perf_counter()
            self.seconds = min(self.seconds, now - self.began)
            self.began = now

    def step_s(batch: int) -> float:
        model.fit(data(batch, 15), verbose=0, callbacks=[fastest := Fastest()])
        return float(fastest.seconds)

    small, large = 2 * replicas, 128 * replicas
    first = step_s(small)
    more = (step_ms / 1000 - first) / max(step_s(large) - first, 1e-6) * (large - small)
    batch = max(small, round((small + more) / replicas) * replicas)
    block = max(8, round(BLOCK_S / step_s(batch)))
    watch = Alternating(steps := Steps(block))
    model.fit(watch.data(data(batch, WARM_UP + 1 + 2 * pairs * block)), verbose=0, callbacks=[watch])
    return summary(steps, watch)


def summary(steps: Steps, watch: Alternating) -> dict[str, Any]:
    """Milliseconds of a step, and shares of it in percent."""
    off = [seconds for place, seconds in enumerate(steps.elapsed) if not steps.on[place]]
    step_s = float(np.percentile(off, 10))
    percent = 100 / step_s
    hooks, other = resampled(steps.differences(steps.processor)), resampled(np.array(steps.other))
    looks = resampled(np.array(steps.looks)) / watch.every
    thread = 100 * watch.thread_s / watch.watched_s
    elapsed = resampled(steps.differences(steps.elapsed)) + looks
    return {
        "step_ms": 1000 * step_s,
        "hooks_us": 1e6 * float(hooks.mean() + other.mean()),
        "parts": [float(part.mean()) * percent for part in (hooks + other, looks)] + [thread],
        "every": watch.every,
        "total": [float(one) for one in np.percentile((hooks + other + looks) * percent + thread, (50, *INTERVAL))],
        "elapsed": [float(one) for one in np.percentile(elapsed * percent, (50, *INTERVAL))],
    }


def nvml_percent(seconds: float = 60.0) -> float:
    """Share of one processor that the process takes that reads NVML, with a simulated library of 8 GPUs."""
    sys.path.append(str(TESTS))  # after kdoctor was found: a folder there has its name
    nvml_library = importlib.import_module("helpers.nvml_library")
    sys.path.remove(str(TESTS))

    with tempfile.TemporaryDirectory() as folder:
        os.environ["LD_LIBRARY_PATH"] = str(nvml_library.build(Path(folder)))
        os.environ |= nvml_library.eight_h100().write(Path(folder, "machine"))
        companion = Companion(lambda: None, interval_s=5.0, on_gpus=True, device_memory=dict)
        time.sleep(5)  # its start is not a cost of each step
        before = [sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True)]
        time.sleep(seconds)
        after = [sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True)]
        sampled = companion.facts()[GpuSampling]
        companion.close()
    if not getattr(sampled, "gpus", ()):
        raise SystemExit(f"NVML was not read: {sampled}")
    return 100 * (sum(after) - sum(before)) / seconds


def main() -> None:
    """Measure each case in a new process, print the shares, and fail if one may be over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", nargs="+", default=["keras", "tf_keras"])
    parser.add_argument("--replicas", nargs="+", type=int, default=[2, 8])
    parser.add_argument("--step-ms", nargs="+", type=float, default=[10.0, 30.0])
    parser.add_argument("--pairs", type=int, default=100, help="pairs of blocks of steps")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = [(p, r, ms) for p in options.packages for r in options.replicas for ms in options.step_ms]
    if options.one:
        print(json.dumps(measure(*cases[0], options.pairs)))
        return
    nvml, over = nvml_percent(), False
    print(f"     {nvml:5.2f} %  of one processor: the process that reads NVML (8 simulated GPUs), contained below")
    for package, replicas, step_ms in cases:
        command = [sys.executable, __file__, "--one", "--packages", package, "--replicas", str(replicas)]
        command += ["--step-ms", str(step_ms), "--pairs", str(options.pairs)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        middle, low, high = (one + nvml for one in found["total"])
        elapsed, elapsed_low, elapsed_high = found["elapsed"]
        over = over or high > LIMIT
        hooks, looks, thread = found["parts"]
        print(
            f"{'OVER' if high > LIMIT else 'ok  '} {middle:5.2f} % ({low:.2f} to {high:.2f})  "
            f"{package}, {replicas} replicas, step of {found['step_ms']:.1f} ms: "
            f"hooks {hooks:.2f} % ({found['hooks_us']:.0f} us), "
            f"comparisons {looks:.2f} % (every {found['every']} steps), thread {thread:.2f} %; "
            f"elapsed time {elapsed:+.1f} % ({elapsed_low:+.1f} to {elapsed_high:+.1f})",
            flush=True,
        )
    sys.exit(over)


if __name__ == "__main__":
    main()
