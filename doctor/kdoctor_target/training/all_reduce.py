"""The all-reduce of one large message over a strategy's replicas: whether it is right to the bit, and how fast."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case

GPU_MESSAGE_BYTES = 128 * 2**20
"""Large enough that the links' bandwidth counts and not the start of an exchange: nccl-tests' curves flatten there."""
CPU_MESSAGE_BYTES = 8 * 2**20

_CHAIN = 5
"""Exchanges in one call, each of the last one's result: what a call itself costs is spread over them."""
_WARM_UP, _TIMED = 2, 5
_REPEAT = 1024.0


def message_bytes(case: Case) -> int:
    """Size of the message for this case's devices."""
    return GPU_MESSAGE_BYTES if case.devices_kind == "gpu" else CPU_MESSAGE_BYTES


def wrong_values(strategy: Any, size: int) -> int:
    """How many values of an all-reduced message are not the exact sum, over all replicas.

    Each replica gives whole numbers of its own, whose sum float32 holds exactly in whatever order it is made.

    Args:
        strategy: a ``MirroredStrategy``.
        size: the message's bytes.
    """
    replicas = strategy.num_replicas_in_sync
    own_numbers = sum(range(replicas))

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def exchange() -> Any:
        def on_a_replica() -> Any:
            context = tf.distribute.get_replica_context()
            pattern = tf.math.floormod(tf.range(size // 4, dtype=tf.float32), _REPEAT)
            mine = pattern + tf.cast(context.replica_id_in_sync_group, tf.float32)
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, mine)
            wrong = tf.not_equal(total, replicas * pattern + own_numbers)  # a NaN equals nothing
            return tf.reduce_sum(tf.cast(wrong, tf.int64))

        return strategy.experimental_local_results(strategy.run(on_a_replica))

    return sum(int(count) for count in exchange())


def bytes_per_s(strategy: Any, size: int) -> float:
    """Bytes per second that the all-reduce sends from each replica, as nccl-tests count its "bus bandwidth".

    That is 2 (R - 1) / R times the size over the time: what a ring of R replicas sends over each link. TensorFlow's
    own packing of the message is in the time, so it is less than nccl-tests print.

    Args:
        strategy: a ``MirroredStrategy``.
        size: the message's bytes.

    Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    replicas = strategy.num_replicas_in_sync

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def exchange() -> Any:
        def on_a_replica() -> Any:
            values = tf.ones([size // 4])
            for _ in range(_CHAIN):
                values = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)
            return values[:1]

        return strategy.experimental_local_results(strategy.run(on_a_replica))

    times = []
    for _ in range(_WARM_UP + _TIMED):
        begun = time.perf_counter()
        for one in exchange():
            float(one[0])  # waits for the device
        times.append(time.perf_counter() - begun)
    return float(size * 2 * (replicas - 1) / replicas * _CHAIN / np.median(times[_WARM_UP:]))
