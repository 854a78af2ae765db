"""The all-reduce of one large message over a strategy's replicas: its exactness and its speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.timing import seconds_of

GPU_MESSAGE_BYTES = 128 * 2**20
"""Large enough that bandwidth matters and latency does not: the curves of nccl-tests flatten at this size."""
CPU_MESSAGE_BYTES = 8 * 2**20

_CHAIN = 5
"""Consecutive all-reduces in one call, to amortise the overhead of the call."""
_WARM_UP, _TIMED = 2, 5
_REPEAT = 1024.0


def message_bytes(case: Case) -> int:
    """Size of the message for this case's devices."""
    return GPU_MESSAGE_BYTES if case.devices_kind == "gpu" else CPU_MESSAGE_BYTES


def wrong_values(strategy: Any, size: int) -> int:
    """How many values of an all-reduced message are not the exact sum, over all replicas.

    Each replica contributes different whole numbers, whose sum is exact in float32 in any order.

    Args:
        strategy: a ``MirroredStrategy``.
        size: the message's bytes.
    """
    replicas = strategy.num_replicas_in_sync
    offsets = sum(range(replicas))

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def all_reduce() -> Any:
        def replica_step() -> Any:
            context = tf.distribute.get_replica_context()
            pattern = tf.math.floormod(tf.range(size // 4, dtype=tf.float32), _REPEAT)
            mine = pattern + tf.cast(context.replica_id_in_sync_group, tf.float32)
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, mine)
            wrong = tf.not_equal(total, replicas * pattern + offsets)  # true for a NaN, too
            return tf.reduce_sum(tf.cast(wrong, tf.int64))

        return strategy.experimental_local_results(strategy.run(replica_step))

    return sum(int(count) for count in all_reduce())


def bytes_per_s(strategy: Any, size: int) -> float:
    """Bytes per second that the all-reduce sends from each replica: the "bus bandwidth" of nccl-tests.

    That is 2 (R - 1) / R times the size over the time: what a ring of R replicas sends over each link. The time
    includes TensorFlow's packing of the message, so the result is lower than that of nccl-tests.

    Args:
        strategy: a ``MirroredStrategy``.
        size: the message's bytes.

    Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    replicas = strategy.num_replicas_in_sync

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def all_reduce() -> Any:
        def replica_step() -> Any:
            values = tf.ones([size // 4])
            for _ in range(_CHAIN):
                values = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)
            return values[:1]

        return strategy.experimental_local_results(strategy.run(replica_step))

    seconds = float(np.median(seconds_of(lambda: [float(one[0]) for one in all_reduce()], _TIMED, _WARM_UP)))
    return float(size * 2 * (replicas - 1) / replicas * _CHAIN / seconds)
