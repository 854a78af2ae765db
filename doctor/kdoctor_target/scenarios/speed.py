"""How fast this machine trains a small model, over one replica and over more; evidence, never a verdict.

Measures: ``per_s 1`` and the like, examples per second over that many replicas, as many for each; ``efficiency``,
the throughput over all replicas divided by that of one and their number; ``all_reduce``, bytes per second that the
gradients' exchange moves from each replica, 2 (R - 1) / R of their size, as NCCL's tests count; ``input_per_s``,
examples per second of the input pipeline alone; ``step_s``, median seconds of a step over all replicas.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.case import Case
from kdoctor_target.training import LEARNING_RATE, describe_strategy, replica_devices

WIDTH = 256
PER_REPLICA = 64
STEPS = 30
WARM_UP = 5
EXCHANGED_BYTES = 16 * 2**20


def throughput(case: Case) -> None:
    """Steps over 1, 2, 4, ... and all replicas, the exchange of gradients alone, and the input alone."""
    case.phase("strategy")
    devices = replica_devices(case)
    sizes = [size for size in (1, 2, 4, 8, 16, 32) if size < len(devices)] + [len(devices)]
    rates: List[float] = []
    strategies = [tf.distribute.MirroredStrategy(devices[:size]) for size in sizes]
    for size, strategy in zip(sizes, strategies):  # noqa: B905 - Python 3.8
        describe_strategy(case, strategy)
        case.phase("train")
        step_s = _step_seconds(strategy)
        rates.append(size * PER_REPLICA / step_s)
        case.measure({"per_s {}".format(size): rates[-1], "step_s": step_s})
    case.measure({"efficiency": rates[-1] / rates[0] / sizes[-1]})
    if len(devices) > 1:
        case.measure({"all_reduce": _exchange_rate(strategies[-1])})
    case.measure({"input_per_s": _input_rate(sizes[-1] * PER_REPLICA)})


def _data(batch: int) -> Any:
    numbers = np.random.RandomState(3)
    inputs = numbers.standard_normal((4 * batch, WIDTH)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((inputs, inputs)).repeat().batch(batch, drop_remainder=True).prefetch(2)


def _step_seconds(strategy: Any) -> float:
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                layers.InputLayer((WIDTH,)),
                *(layers.Dense(WIDTH, activation="relu") for _ in range(3)),
                layers.Dense(WIDTH),
            ]
        )
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        model.compile(optimizer=optimizer, loss="mean_squared_error", jit_compile=False)
    data = iter(strategy.experimental_distribute_dataset(_data(PER_REPLICA * strategy.num_replicas_in_sync)))
    model.fit(_data(PER_REPLICA * strategy.num_replicas_in_sync), steps_per_epoch=WARM_UP, epochs=1, verbose=0)
    function = model.make_train_function()
    function = function or model.train_function
    return _median_seconds(lambda: function(data))


def _exchange_rate(strategy: Any) -> float:
    replicas = strategy.num_replicas_in_sync

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def exchange() -> Any:
        def on_a_replica() -> Any:
            values = tf.ones([EXCHANGED_BYTES // 4])
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)[:1]

        return strategy.experimental_local_results(strategy.run(on_a_replica))

    seconds: float = _median_seconds(lambda: [float(one[0]) for one in exchange()])
    return float(EXCHANGED_BYTES * 2 * (replicas - 1) / replicas / seconds)


def _input_rate(batch: int) -> float:
    data = iter(_data(batch))
    return batch / _median_seconds(lambda: next(data)[0].numpy()[0, 0])


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
