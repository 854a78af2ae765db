"""ParameterServerStrategy: a coordinator, a parameter server and two workers, over 127.0.0.1.

The workers take batches as they come, so the weights depend on timing and are not compared with another training. All
processes run on the CPU: the scenario tests that they work together.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, regression
from kdoctor_target.training.replicas import compiled_model, describe_strategy, make_model, one_thread_each
from kdoctor_target.training.workers import Cluster, Task

STEPS = 12
BATCH = 8
WORKERS = 2


def fit(case: Case) -> None:
    """``Model.fit``, where Keras coordinates."""
    _with_cluster(case, _fit)


def custom_loop(case: Case) -> None:
    """``ClusterCoordinator.schedule`` in a custom loop."""
    _with_cluster(case, _schedule)


def _with_cluster(case: Case, train: Callable[[Case, Any, Batches], Any]) -> None:
    case.phase("strategy")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    one_thread_each(WORKERS)
    cluster = Cluster(case, worker=WORKERS, ps=1)
    try:
        for task in (Task("ps", 0), *(Task("worker", index) for index in range(WORKERS))):
            cluster.start(task, lambda _, me: _serve(cluster, me))
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(cluster.addresses), rpc_layer="grpc"
        )
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        describe_strategy(case, strategy)
        model = train(case, strategy, Batches(*regression(STEPS * BATCH), BATCH))
        case.phase("inspect")
        finite = [bool(np.isfinite(weight).all()) for weight in model.get_weights()]
        case.measure({"workers": WORKERS, "weights": len(finite), "finite": sum(finite)})
    finally:
        cluster.end()


def _serve(cluster: Cluster, me: Task) -> None:
    """Serve the coordinator until the process is ended."""
    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster.addresses), job_name=me.role, task_index=me.number, protocol="grpc"
    )
    server.join()


def _fit(case: Case, strategy: Any, batches: Batches) -> Any:
    case.phase("build")
    with strategy.scope():
        model = compiled_model(case)
    case.note(**batches.facts())
    case.phase("train")
    history = model.fit(batches.dataset().repeat(), epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0, shuffle=False)
    case.note(losses=history.history["loss"], steps=EPOCHS * STEPS)
    return model


def _schedule(case: Case, strategy: Any, batches: Batches) -> Any:
    case.phase("build")
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        optimizer.build(model.trainable_variables)
    case.note(optimizer=type(optimizer).__name__, **batches.facts())

    def on_a_worker(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(targets - model(inputs, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
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
