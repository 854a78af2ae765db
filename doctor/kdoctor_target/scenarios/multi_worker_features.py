"""Features of real jobs in a custom loop with MultiWorkerMirroredStrategy, over two processes.

Measures: see ``kdoctor_target.training.optimizers``, ``clipping`` and ``random_numbers``; of ``adam-built-in-scope``
and ``metrics-of-classes`` also ``metric NAME`` and ``reference NAME`` of metrics that every worker updates with its
part of the data.
"""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.scenarios.multi_worker import join, run_workers
from kdoctor_target.training.clipping import clip_sum, clipping_job, measure_way
from kdoctor_target.training.compared import History, Job, compare
from kdoctor_target.training.custom_loop import Change, one_step
from kdoctor_target.training.families import FAMILIES, OPTIMIZERS
from kdoctor_target.training.optimizers import Train, fit_once, measure_state, one_epoch
from kdoctor_target.training.random_numbers import SEED, ReplicaDropout, compare_masks
from kdoctor_target.training.regression import Batches, dense_model
from kdoctor_target.training.workers import Task, expect_all_trained

WORKERS = 2
CLASSES = 3


def on_workers(train: Callable[[Case, Any], None]) -> Callable[[Case], None]:
    """A case whose workers train with this function of a case and a strategy."""

    def task(case: Case, me: Task) -> None:
        train(case, join(case, me, WORKERS)[0])

    return lambda case: expect_all_trained(run_workers(case, WORKERS, task))


def adam(case: Case, strategy: Any) -> None:
    """Adam that is built in the scope, and a metric."""
    _compare_adam(case, strategy, with_metrics(lambda: [tf.keras.metrics.MeanAbsoluteError(name="mae")]))


def adam_built_late(case: Case, strategy: Any) -> None:
    """Adam that is built by the first step."""
    _compare_adam(case, strategy, _loop)


def _compare_adam(case: Case, strategy: Any, train: Train) -> None:
    def make() -> Any:
        return FAMILIES["adam"].make(tf.keras)

    single = Job(make, fit=fit_once, data=_by_example, compile=lambda: {"metrics": ["mae"]})
    measure_state(case, compare(case, Job(make, fit=train, data=_by_example), single, strategy))


def optimizes(name: str) -> Callable[[Case, Any], None]:
    """A function that trains with this optimizer, which is built in the scope."""

    def run(case: Case, strategy: Any) -> None:
        single = Job(lambda: OPTIMIZERS[name].make(tf.keras), fit=fit_once, data=_by_example)
        measure_state(case, compare(case, single._replace(fit=_built_in_scope), single, strategy))

    return run


def metrics_of_classes(case: Case, strategy: Any) -> None:
    """Top-k accuracy and F1, which count over all examples of the epoch."""

    def metrics() -> List[Any]:
        kinds = tf.keras.metrics
        return [kinds.TopKCategoricalAccuracy(2, name="top_2"), kinds.F1Score("macro", name="f1")]

    def data(replicas: int) -> Batches:
        batches = _by_example(replicas)
        places: Any = np.argmax(batches.inputs[:, :CLASSES], axis=1)
        return batches._replace(targets=np.eye(CLASSES, dtype="float32")[places])

    def model() -> Any:
        return dense_model(tf.keras, outputs=CLASSES, activation="softmax")

    single = Job(model=model, fit=fit_once, data=data, compile=lambda: {"metrics": metrics()})
    compare(case, single._replace(fit=with_metrics(metrics), compile=dict), single, strategy)


def with_metrics(make: Callable[[], List[Any]]) -> Train:
    """A custom loop that updates these metrics in each step."""

    def train(model: Any, batches: Batches) -> History:
        with model.distribute_strategy.scope():
            metrics = make()
        history = _built_in_scope(model, batches, metrics=metrics)
        return {**history, **{metric.name: [float(metric.result())] for metric in metrics}}

    return train


def global_clipnorm(case: Case, strategy: Any) -> None:
    """The optimizer clips."""
    single = _clips()
    measure_way(case, "global_clipnorm", compare(case, single._replace(fit=_built_in_scope), single, strategy).single)


def clip_after_reduction(case: Case, strategy: Any) -> None:
    """The alternative: the step adds up the gradients of the workers, then clips them."""

    def train(model: Any, batches: Batches) -> History:
        return _built_in_scope(model, batches, change=clip_sum)

    job = Job(fit=train, data=_by_example)
    measure_way(case, "global_clipnorm", compare(case, job, _clips(), strategy).single)


def _clips() -> Job:
    return clipping_job(tf.keras, "global_clipnorm")._replace(fit=fit_once, data=_by_example)


def dropout(case: Case, strategy: Any) -> None:
    """The masks of Keras's Dropout on each worker."""
    compare_masks(case, lambda: tf.keras.layers.Dropout(0.5, seed=SEED), strategy)


def dropout_per_replica(case: Case, strategy: Any) -> None:
    """The alternative: a Dropout layer that adds the replica's index to its seed; in Keras 2, the worker's index."""
    if hasattr(tf.keras, "random"):
        compare_masks(case, lambda: ReplicaDropout(0.5, seed=SEED), strategy)
    else:
        worker = strategy.cluster_resolver.task_id
        compare_masks(case, lambda: tf.keras.layers.Dropout(0.5, seed=SEED + worker), strategy)


def _by_example(replicas: int) -> Batches:
    return one_epoch(replicas)._replace(by_example=True)


def _built_in_scope(model: Any, batches: Batches, **options: Any) -> History:
    with model.distribute_strategy.scope():
        model.optimizer.build(model.trainable_variables)
    return _loop(model, batches, **options)


def _loop(model: Any, batches: Batches, metrics: Sequence[Any] = (), change: Change = None) -> History:
    """One epoch of a custom loop. The metrics get the predictions before each step, as in ``fit``."""
    strategy = model.distribute_strategy
    step = one_step(strategy, model, model.optimizer, batches.global_batch, change=change)

    def update_replica(inputs: Any, targets: Any) -> None:
        outputs = model(inputs, training=True)
        for metric in metrics:
            metric.update_state(targets, outputs)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def update(inputs: Any, targets: Any) -> None:
        strategy.run(update_replica, args=(inputs, targets))

    losses = []
    for inputs, targets in strategy.experimental_distribute_dataset(batches.dataset()):
        if metrics:
            update(inputs, targets)
        losses.append(float(step(inputs, targets)))
    return {"loss": [sum(losses) / len(losses)]}


CASES = {
    "adam-built-late": on_workers(adam_built_late),
    "adam-built-in-scope": on_workers(adam),
    **{name: on_workers(optimizes(name)) for name in ("nesterov", "amsgrad", "centered-rmsprop")},
    "metrics-of-classes": on_workers(metrics_of_classes),
    "global-clipnorm": on_workers(global_clipnorm),
    "clip-after-reduction": on_workers(clip_after_reduction),
    "dropout": on_workers(dropout),
    "dropout-per-replica": on_workers(dropout_per_replica),
}
