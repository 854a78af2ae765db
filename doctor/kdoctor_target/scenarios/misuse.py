"""Unsupported uses that should raise an error: XLA with several replicas, a missing device, two strategies at once.

Measures of ``no-such-device``: ``patience_s``, the seconds after which kdoctor ends the process.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import make_batches
from kdoctor_target.training.replicas import (
    compile_model,
    compiled_model,
    describe_strategy,
    inspect_weights,
    make_model,
    make_strategy,
    replica_devices,
    train,
)
from kdoctor_target.training.workers import Cluster, Task, note_workers

STEPS = 4
NO_SUCH_DEVICE = 99
PATIENCE_S = 15.0


def jit_compile(case: Case) -> None:
    """``jit_compile=True``: XLA cannot compile communication between replicas."""
    strategy = make_strategy(case)
    case.phase("build")
    with strategy.scope():
        model = make_model()
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mean_squared_error", jit_compile=True)
    train_and_inspect(case, strategy, model)


def no_such_device(case: Case) -> None:
    """A replica on a device that does not exist; in a separate process, because it may hang."""
    case.phase("strategy")
    patience = min(PATIENCE_S, 0.7 * case.deadline_s)
    case.measure({"patience_s": patience})
    cluster = Cluster(case, process=1)
    try:
        cluster.start(Task("process", 0), lambda task_case, _: _on_no_such_device(task_case), with_config=False)
        ended = cluster.wait(patience)
    finally:
        cluster.end()
    note_workers(case, ended)


def _on_no_such_device(case: Case) -> None:
    case.phase("strategy")
    devices = replica_devices(case)
    kind = "GPU" if case.devices_kind == "gpu" else "CPU"
    case.phase("build")
    strategy = tf.distribute.MirroredStrategy([devices[0], f"{kind}:{NO_SUCH_DEVICE}"])
    describe_strategy(case, strategy)
    with strategy.scope():
        model = compiled_model(case)
    train_and_inspect(case, strategy, model)


def two_strategies(case: Case) -> None:
    """The model is built in one strategy's scope and compiled in another's."""
    strategy = make_strategy(case)
    other = tf.distribute.MirroredStrategy(list(strategy.extended.worker_devices))
    case.phase("build")
    with strategy.scope():
        model = make_model()
    with other.scope():
        compile_model(case, model)
    train_and_inspect(case, strategy, model)


def train_and_inspect(case: Case, strategy: Any, model: Any) -> None:
    """A few steps, then what the weights are on the replicas."""
    train(case, model, make_batches(strategy.num_replicas_in_sync, STEPS))
    inspect_weights(case, strategy, model)
