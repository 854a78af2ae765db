"""MultiWorkerMirroredStrategy: real processes that speak to each other over 127.0.0.1.

On the CPU each process has one device; GPUs are shared out among two processes.

Measures of ``chief-saves``: ``variables``, and ``equal to worker 0`` and so on: how many of them, loaded from what the
first worker saved, are bit by bit what that worker held.
"""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.custom_loop import train_by_hand
from kdoctor_target.training.replicas import (
    Batches,
    describe_strategy,
    inspect_weights,
    make_model,
    one_thread_each,
    regression,
    train_mirrored,
    train_reference,
)
from kdoctor_target.training.workers import Cluster, Facts, Task, expect_all_trained, note_workers

STEPS = 6
PER_REPLICA = 8
MOST_WORKERS = 4

Train = Callable[[Case, Any, Batches], Any]


def fit(case: Case) -> None:
    """``Model.fit`` in every worker."""
    _train(case, lambda own, strategy, batches: train_mirrored(own, strategy, batches, normalised=False))


def custom_loop(case: Case) -> None:
    """``strategy.run`` by hand in every worker."""
    _train(case, train_by_hand)


def _train(case: Case, train: Train) -> None:
    workers = worker_count(case)

    def task(own: Case, me: Task) -> None:
        strategy, batches = join(own, me, workers)
        reference = train_reference(own, batches, normalised=False)
        model = train(own, strategy, batches)
        inspect_weights(own, strategy, model, reference)

    expect_all_trained(run_workers(case, workers, task))


def worker_count(case: Case) -> int:
    """How many processes: one for each replica that is asked for, at most four; two on GPUs."""
    if case.devices_kind == "gpu":
        return 2
    return max(2, min(case.replicas or 2, MOST_WORKERS))


def run_workers(case: Case, workers: int, task: Callable[[Case, Task], None]) -> List[Facts]:
    """Run the task in every worker; what the first says becomes the case's facts."""
    case.phase("strategy")
    cluster = Cluster(case, worker=workers)
    try:
        for index in range(workers):
            cluster.start(Task("worker", index), task)
        ended = cluster.wait(0.7 * case.deadline_s, grace_s=10.0)
    finally:
        cluster.end()
    note_workers(case, ended)
    skipped = [facts for facts in ended if facts["outcome"] == "skipped"]
    if skipped:
        case.skip(skipped[0]["error_message"])
    return ended


def join(own: Case, me: Task, workers: int) -> Tuple[Any, Batches]:
    """Wait for the other workers; the strategy and the global batches."""
    own.phase("strategy")
    _take_devices(own, me, workers)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    describe_strategy(own, strategy)
    global_batch = PER_REPLICA * strategy.num_replicas_in_sync
    inputs, targets = regression(STEPS * global_batch)
    return strategy, Batches(inputs, targets, global_batch, by_example=True)


def _take_devices(own: Case, me: Task, workers: int) -> None:
    """This worker's share of the GPUs."""
    one_thread_each(2)
    if own.devices_kind == "cpu":
        return
    gpus = tf.config.list_physical_devices("GPU")
    own.note(gpus_seen=len(gpus))
    mine = gpus[: own.replicas][me.number :: workers]
    if not mine:
        own.skip("{} workers need as many GPUs, and there are {}".format(workers, len(gpus)))
    tf.config.set_visible_devices(mine, "GPU")


def chief_saves(case: Case) -> None:
    """All workers save, as TensorFlow asks for; the file that counts is the first one's, and loads on one device."""
    workers = worker_count(case)
    stem = str(case.stem)

    def task(own: Case, me: Task) -> None:
        strategy, batches = join(own, me, workers)
        model = train_by_hand(own, strategy, batches)
        own.phase("save")
        np.savez("{}.{}.npz".format(stem, me.number), *model.get_weights())
        model.save_weights("{}.{}.weights.h5".format(stem, me.number))

    expect_all_trained(run_workers(case, workers, task))
    case.phase("load")
    loaded = make_model(normalised=False)
    loaded.load_weights("{}.0.weights.h5".format(stem))
    for number in range(workers):
        saved = list(np.load("{}.{}.npz".format(stem, number)).values())
        equal = [np.array_equal(one, other) for one, other in zip(loaded.get_weights(), saved)]  # noqa: B905
        case.measure({"variables": len(saved), "equal to worker {}".format(number): sum(equal)})


CASES = {"fit": fit, "custom-loop": custom_loop, "chief-saves": chief_saves}
