"""How fast this machine trains a small model on one and on several replicas, and possible bottlenecks.

The steps reuse one prepared batch, so that the input pipeline does not slow them. The input pipeline is timed
separately and must deliver as many examples as the steps use.

Measures: ``per_s 1`` and so on, examples per second on that many replicas with the same per-replica batch size;
``step 1`` and so on, median seconds of such a step; ``efficiency``, the throughput on all replicas divided by that of
one and by their number; ``all_reduce_gbs``, GB/s that the all-reduce of a large message sends from each replica (see
``kdoctor_target.training.all_reduce``); ``input_per_s``, examples per second of the input pipeline.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.all_reduce import bytes_per_s, message_bytes
from kdoctor_target.training.isolated import list_devices, note_devices, take_devices
from kdoctor_target.training.regression import LEARNING_RATE
from kdoctor_target.training.timing import fit_step_seconds, median_seconds
from kdoctor_target.training.workers import Facts, Task, expect_all_trained, in_a_process

WIDTHS = {"cpu": 256, "gpu": 2048}
"""Units of a layer: a step on a GPU must take longer than its launch."""
PER_REPLICA = {"cpu": 64, "gpu": 256}


def throughput(case: Case) -> None:
    """Time steps on 1, 2, 4, ... and all replicas, then the all-reduce and the input pipeline.

    Each runs in a separate process, because the collectives of MirroredStrategies of 2 and of 3 devices in one process
    collide (TensorFlow 2.21: "joining a group with size 3, but that group has size 2").
    """
    end = time.monotonic() + 0.9 * case.deadline_s

    def isolated(number: int, name: str, function: Callable[[Case], None]) -> Facts:
        case.phase(name)
        facts = in_a_process(case, Task("process", number), function, end - time.monotonic())
        expect_all_trained([facts])
        return facts

    replicas = len(note_devices(case, isolated(0, "strategy", list_devices)))
    sizes = [size for size in (1, 2, 4, 8, 16, 32) if size < replicas] + [replicas]
    rates: List[float] = []
    for size in sizes:
        step_s = isolated(size, f"train on {size}", partial(_train, size=size))["step_s"]
        rates.append(size * PER_REPLICA[case.devices_kind] / step_s)
        case.measure({f"per_s {size}": rates[-1], f"step {size}": step_s})
        case.note(step_s=step_s)
    case.measure({"efficiency": rates[-1] / rates[0] / replicas})
    if replicas > 1:
        case.measure(isolated(100, "all-reduce", partial(_all_reduce, replicas=replicas))["measures"])
    case.measure(isolated(101, "input", partial(_input, replicas=replicas))["measures"])


def _train(case: Case, size: int) -> None:
    strategy = tf.distribute.MirroredStrategy(take_devices(case, range(size)))
    case.note(step_s=_step_seconds(case, strategy))


def _all_reduce(case: Case, replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(take_devices(case, range(replicas)))
    case.measure({"all_reduce_gbs": bytes_per_s(strategy, message_bytes(case)) / 1e9})


def _input(case: Case, replicas: int) -> None:
    tf.config.set_visible_devices([], "GPU")
    case.measure({"input_per_s": _input_rate(case, replicas)})


def _examples(case: Case, number: int) -> Any:
    numbers = np.random.RandomState(3)
    return numbers.standard_normal((number, WIDTHS[case.devices_kind])).astype("float32")


def _step_seconds(case: Case, strategy: Any) -> float:
    width = WIDTHS[case.devices_kind]
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                layers.InputLayer((width,)),
                *(layers.Dense(width, activation="relu") for _ in range(3)),
                layers.Dense(width),
            ]
        )
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
    ready = _examples(case, PER_REPLICA[case.devices_kind] * strategy.num_replicas_in_sync)
    data = tf.data.Dataset.from_tensors((ready, ready)).repeat().prefetch(2)
    return fit_step_seconds(strategy, model, data)


def _input_rate(case: Case, replicas: int) -> float:
    """Examples per second of a pipeline that reads single examples from memory and batches them."""
    batch = PER_REPLICA[case.devices_kind] * replicas
    examples = _examples(case, 4 * batch)
    data = tf.data.Dataset.from_tensor_slices((examples, examples)).repeat()
    batches = iter(data.batch(batch, drop_remainder=True).prefetch(2))
    return batch / median_seconds(lambda: next(batches)[0].numpy()[0, 0])
