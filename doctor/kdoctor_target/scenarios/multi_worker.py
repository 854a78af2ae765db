"""MultiWorkerMirroredStrategy: real processes that communicate over 127.0.0.1.

On the CPU each process has one device; GPUs are divided between two processes.

Measures of ``chief-saves``: ``variables``; ``equal to worker 0`` and so on, how many of the variables that the first
worker saved are bit-identical to that worker's.
"""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.comparison import compare_custom_loop, compare_fit
from kdoctor_target.training.custom_loop import train_custom_loop
from kdoctor_target.training.regression import Batches, make_batches
from kdoctor_target.training.replicas import describe_strategy, make_model, one_thread_each
from kdoctor_target.training.workers import Cluster, Facts, Task, expect_all_trained, note_workers

MOST_WORKERS = 4


def fit(case: Case) -> None:
    """``Model.fit`` in every worker."""
    _train(case, compare_fit)


def custom_loop(case: Case) -> None:
    """A custom training loop with ``strategy.run`` in every worker."""
    _train(case, compare_custom_loop)


def _train(case: Case, compare: Callable[[Case, Any, Batches], None]) -> None:
    workers = worker_count(case)

    def task(task_case: Case, me: Task) -> None:
        compare(task_case, *join(task_case, me, workers))

    expect_all_trained(run_workers(case, workers, task))


def worker_count(case: Case) -> int:
    """The number of processes: one for each requested replica, at most four; two on GPUs."""
    if case.devices_kind == "gpu":
        return 2
    return max(2, min(case.replicas or 2, MOST_WORKERS))


def run_workers(case: Case, workers: int, task: Callable[[Case, Task], None]) -> List[Facts]:
    """Run the task in every worker; the facts of the first one become the case's."""
    case.phase("strategy")
    cluster = Cluster(case, worker=workers)
    try:
        cluster.start_all([Task("worker", index) for index in range(workers)], task)
        ended = cluster.wait(0.7 * case.deadline_s, grace_s=10.0)
    finally:
        cluster.end()
    note_workers(case, ended)
    skipped = [facts for facts in ended if facts["outcome"] == "skipped"]
    if skipped:
        case.skip(skipped[0]["error_message"])
    return ended


def join(case: Case, me: Task, workers: int) -> Tuple[Any, Batches]:
    """Wait for the other workers; returns the strategy and the global batches."""
    case.phase("strategy")
    _take_devices(case, me, workers)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    describe_strategy(case, strategy)
    return strategy, make_batches(strategy.num_replicas_in_sync)._replace(by_example=True)


def _take_devices(case: Case, me: Task, workers: int) -> None:
    one_thread_each(2)
    if case.devices_kind == "cpu":
        return
    gpus = tf.config.list_physical_devices("GPU")
    case.note(gpus_seen=len(gpus))
    mine = gpus[: case.replicas][me.number :: workers]
    if not mine:
        case.skip(f"each worker requires a GPU: {workers} needed, {len(gpus)} available")
    tf.config.set_visible_devices(mine, "GPU")


def chief_saves(case: Case) -> None:
    """All workers save, as TensorFlow requires; the first worker's file is loaded on one device."""
    workers = worker_count(case)
    stem = str(case.stem)

    def task(task_case: Case, me: Task) -> None:
        strategy, batches = join(task_case, me, workers)
        model = train_custom_loop(task_case, strategy, batches)
        task_case.phase("save")
        np.savez(f"{stem}.{me.number}.npz", *model.get_weights())
        model.save_weights(f"{stem}.{me.number}.weights.h5")

    expect_all_trained(run_workers(case, workers, task))
    case.phase("load")
    loaded = make_model()
    loaded.load_weights(f"{stem}.0.weights.h5")
    for number in range(workers):
        saved = list(np.load(f"{stem}.{number}.npz").values())
        equal = [np.array_equal(one, other) for one, other in zip(loaded.get_weights(), saved)]
        case.measure({"variables": len(saved), f"equal to worker {number}": sum(equal)})
