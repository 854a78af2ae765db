"""ParameterServerStrategy: a coordinator, a process that holds the variables, and two that compute, over 127.0.0.1.

The workers take batches as they come, so the weights depend on who was faster: they are held against no other
training. All processes compute on the CPU: what is tried is that they work together.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import (
    EPOCHS,
    LEARNING_RATE,
    Batches,
    compile_model,
    describe_strategy,
    make_model,
    one_thread_each,
    regression,
)
from kdoctor_target.training.workers import Cluster, Task

STEPS = 12
BATCH = 8
WORKERS = 2


def fit(case: Case) -> None:
    """``Model.fit``, which leaves the coordination to Keras."""
    _with_cluster(case, _fit)


def custom_loop(case: Case) -> None:
    """``ClusterCoordinator.schedule`` by hand."""
    _with_cluster(case, _schedule)


def _with_cluster(case: Case, train: Callable[[Case, Any, Batches], Any]) -> None:
    case.phase("strategy")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    one_thread_each(WORKERS)
    cluster = Cluster(case, worker=WORKERS, ps=1)
    try:
        for task in (Task("ps", 0), *(Task("worker", index) for index in range(WORKERS))):
            cluster.start(task, lambda _own, me: _serve(cluster, me))
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(cluster.addresses), rpc_layer="grpc"
        )
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        describe_strategy(case, strategy)
        inputs, targets = regression(STEPS * BATCH)
        model = train(case, strategy, Batches(inputs, targets, BATCH))
        case.phase("inspect")
        finite = [bool(np.isfinite(weight).all()) for weight in model.get_weights()]
        case.measure({"workers": WORKERS, "weights": len(finite), "finite": sum(finite)})
    finally:
        cluster.end()


def _serve(cluster: Cluster, me: Task) -> None:
    """Do what the coordinator asks for, until the end."""
    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster.addresses), job_name=me.role, task_index=me.number, protocol="grpc"
    )
    server.join()


def _fit(case: Case, strategy: Any, batches: Batches) -> Any:
    case.phase("build")
    with strategy.scope():
        model = compile_model(case, make_model(normalised=False))
    case.note(**batches.facts())
    case.phase("train")
    history = model.fit(batches.dataset().repeat(), epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0, shuffle=False)
    case.note(losses=history.history["loss"], steps=EPOCHS * STEPS)
    return model


def _schedule(case: Case, strategy: Any, batches: Batches) -> Any:
    case.phase("build")
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = make_model(normalised=False)
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        optimizer.build(model.trainable_variables)
    case.note(optimizer=type(optimizer).__name__, **batches.facts())

    def on_a_worker(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(targets - model(inputs, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905 - Python 3.8
        return loss

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step(iterator: Any) -> Any:
        return strategy.run(on_a_worker, args=next(iterator))

    data = coordinator.create_per_worker_dataset(lambda: batches.dataset().repeat())
    iterator = iter(data)
    case.phase("train")
    case.note(steps=0)
    losses: List[float] = []
    for epoch in range(EPOCHS):
        begun = time.perf_counter()
        scheduled = [coordinator.schedule(step, args=(iterator,)) for _ in range(STEPS)]
        coordinator.join()
        losses.append(float(np.mean(coordinator.fetch(scheduled))))
        case.note(steps=(epoch + 1) * STEPS, step_s=(time.perf_counter() - begun) / STEPS)
    case.note(losses=losses)
    return model


CASES = {"fit": fit, "custom-loop": custom_loop}
