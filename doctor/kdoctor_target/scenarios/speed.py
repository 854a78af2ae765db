"""How fast this machine trains a small model, over one replica and over more, and what may hold it up.

The steps are given one batch that is ready, again and again, so that the input does not slow them; the input pipeline
is timed alone, and must give as many examples as the steps use.

Measures: ``per_s 1`` and the like, examples per second over that many replicas, as many for each; ``step 1`` and the
like, median seconds of such a step; ``efficiency``, the throughput over all replicas divided by that of one and their
number; ``all_reduce_gbs``, GB/s that the all-reduce of a large message sends from each replica (see
``kdoctor_target.training.all_reduce``); ``input_per_s``, examples per second of the input pipeline alone.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.runner.isolated import in_a_process, list_devices, note_devices, take_devices
from kdoctor_target.training.all_reduce import bytes_per_s, message_bytes
from kdoctor_target.training.replicas import LEARNING_RATE
from kdoctor_target.training.timing import fit_step_seconds, median_seconds
from kdoctor_target.training.workers import Facts, Task, expect_all_trained

WIDTHS = {"cpu": 256, "gpu": 2048}
"""Units of a layer: a GPU's step must take longer than it takes to ask for it."""
PER_REPLICA = {"cpu": 64, "gpu": 256}


def throughput(case: Case) -> None:
    """Steps over 1, 2, 4, ... and all replicas, the exchange of gradients alone, and the input alone.

    Each in a process of its own: MirroredStrategies of 2 and of 3 devices in one process get into each other's
    collectives (TensorFlow 2.21: "joining a group with size 3, but that group has size 2").
    """
    end = time.monotonic() + 0.9 * case.deadline_s

    def alone(number: int, name: str, function: Callable[[Case], None]) -> Facts:
        case.phase(name)
        facts = in_a_process(case, Task("process", number), function, end - time.monotonic())
        expect_all_trained([facts])
        return facts

    replicas = len(note_devices(case, alone(0, "strategy", list_devices)))
    sizes = [size for size in (1, 2, 4, 8, 16, 32) if size < replicas] + [replicas]
    rates: List[float] = []
    for size in sizes:
        step_s = alone(size, "train on {}".format(size), partial(_train, size=size))["step_s"]
        rates.append(size * PER_REPLICA[case.devices_kind] / step_s)
        case.measure({"per_s {}".format(size): rates[-1], "step {}".format(size): step_s})
        case.note(step_s=step_s)
    case.measure({"efficiency": rates[-1] / rates[0] / replicas})
    if replicas > 1:
        case.measure(alone(100, "all-reduce", partial(_exchange, replicas=replicas))["measures"])
    case.measure(alone(101, "input", partial(_input, replicas=replicas))["measures"])


def _train(own: Case, size: int) -> None:
    strategy = tf.distribute.MirroredStrategy(take_devices(own, range(size)))
    own.note(step_s=_step_seconds(own, strategy))


def _exchange(own: Case, replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(take_devices(own, range(replicas)))
    own.measure({"all_reduce_gbs": bytes_per_s(strategy, message_bytes(own)) / 1e9})


def _input(own: Case, replicas: int) -> None:
    tf.config.set_visible_devices([], "GPU")
    own.measure({"input_per_s": _input_rate(own, replicas)})


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
    """Examples per second of the pipeline that such a job would have: one by one out of memory, and batched."""
    batch = PER_REPLICA[case.devices_kind] * replicas
    examples = _examples(case, 4 * batch)
    data = tf.data.Dataset.from_tensor_slices((examples, examples)).repeat()
    batches = iter(data.batch(batch, drop_remainder=True).prefetch(2))
    return batch / median_seconds(lambda: next(batches)[0].numpy()[0, 0])


CASES = {"throughput": throughput}
