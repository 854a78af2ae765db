"""How fast this machine trains a small model, over one replica and over more, and what may hold it up.

The steps are given one batch that is ready, again and again, so that the input does not slow them; the input pipeline
is timed alone, and must give as many examples as the steps use.

Measures: ``per_s 1`` and the like, examples per second over that many replicas, as many for each; ``step 1`` and the
like, median seconds of such a step; ``efficiency``, the throughput over all replicas divided by that of one and their
number; ``all_reduce_gbs``, GB/s that the all-reduce of a large message sends from each replica (see
``kdoctor_target.exchange``); ``input_per_s``, examples per second of the input pipeline alone.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.case import Case
from kdoctor_target.cuda import gpu_addresses
from kdoctor_target.exchange import bytes_per_s, message_bytes
from kdoctor_target.training import LEARNING_RATE, describe_strategy, replica_devices

WIDTHS = {"cpu": 256, "gpu": 2048}
"""Units of a layer: a GPU's step must take longer than it takes to ask for it."""
PER_REPLICA = {"cpu": 64, "gpu": 256}
STEPS = 30
WARM_UP = 5


def throughput(case: Case) -> None:
    """Steps over 1, 2, 4, ... and all replicas, the exchange of gradients alone, and the input alone."""
    case.phase("strategy")
    devices = replica_devices(case)
    if case.devices_kind == "gpu":
        case.note(bus_ids=gpu_addresses()[: len(devices)])
    sizes = [size for size in (1, 2, 4, 8, 16, 32) if size < len(devices)] + [len(devices)]
    rates: List[float] = []
    strategies = [tf.distribute.MirroredStrategy(devices[:size]) for size in sizes]
    for size, strategy in zip(sizes, strategies):  # noqa: B905 - Python 3.8
        describe_strategy(case, strategy)
        case.phase("train on {}".format(size))
        step_s = _step_seconds(case, strategy)
        rates.append(size * PER_REPLICA[case.devices_kind] / step_s)
        case.measure({"per_s {}".format(size): rates[-1], "step {}".format(size): step_s})
        case.note(step_s=step_s)
    case.measure({"efficiency": rates[-1] / rates[0] / sizes[-1]})
    if len(devices) > 1:
        case.phase("all-reduce")
        case.measure({"all_reduce_gbs": bytes_per_s(strategies[-1], message_bytes(case)) / 1e9})
    case.phase("input")
    case.measure({"input_per_s": _input_rate(case, sizes[-1])})


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
    model.fit(data, steps_per_epoch=WARM_UP, epochs=1, verbose=0)
    function = model.make_train_function()
    function = function or model.train_function
    shared = iter(strategy.experimental_distribute_dataset(data))
    return _median_seconds(lambda: function(shared))


def _input_rate(case: Case, replicas: int) -> float:
    """Examples per second of the pipeline that such a job would have: one by one out of memory, and batched."""
    batch = PER_REPLICA[case.devices_kind] * replicas
    examples = _examples(case, 4 * batch)
    data = tf.data.Dataset.from_tensor_slices((examples, examples)).repeat()
    batches = iter(data.batch(batch, drop_remainder=True).prefetch(2))
    return batch / _median_seconds(lambda: next(batches)[0].numpy()[0, 0])


def _median_seconds(once: Callable[[], Any]) -> float:
    times = []
    for _ in range(STEPS + WARM_UP):
        begun = time.perf_counter()
        result = once()
        if hasattr(result, "items"):  # a step's logs: to read one waits for the device
            _ = [float(value) for value in result.values() if np.size(value) == 1]
        times.append(time.perf_counter() - begun)
    return float(np.median(times[WARM_UP:]))


CASES = {"throughput": throughput}
