"""A custom training loop: what Keras's ``fit`` does, written out for any strategy."""

from __future__ import annotations

import time
from typing import Any, Callable, List, Optional

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches
from kdoctor_target.training.replicas import make_model
from kdoctor_target.training.steps import Steps, step_seconds, traces_of

Change = Optional[Callable[[Any], Any]]


def train_custom_loop(case: Case, strategy: Any, batches: Batches) -> Any:
    """Train on the strategy's replicas with ``strategy.run`` and ``compute_average_loss``; returns the model.

    Every batch must be full, because the loss is divided by the size of the global batch.
    """
    case.phase("build")
    started = time.perf_counter()
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        optimizer.build(model.trainable_variables)
    case.note(build_s=time.perf_counter() - started, optimizer=type(optimizer).__name__, **batches.facts())
    case.phase("data")
    data = strategy.experimental_distribute_dataset(batches.dataset())
    steps = Steps(case, traces_of(strategy))
    step = one_step(strategy, model, optimizer, batches.global_batch, steps=steps)
    losses: List[float] = []
    for _ in range(EPOCHS):
        total = []
        for inputs, targets in data:
            steps.begin()
            total.append(float(step(inputs, targets)))
            steps.end()
        losses.append(sum(total) / len(total))
    case.note(losses=losses, **step_seconds(steps.seconds))
    return model


def one_step(  # noqa: PLR0913 - what a step consists of
    strategy: Any,
    model: Any,
    optimizer: Any,
    global_batch: int,
    *,
    steps: Optional[Steps] = None,
    change: Change = None,
) -> Callable[[Any, Any], Any]:
    """The compiled function that trains one global batch and returns its loss."""
    replica_step = one_replica_step(model, optimizer, global_batch, change)
    traced = steps.watch_tracing(replica_step) if steps else replica_step

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step(inputs: Any, targets: Any) -> Any:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(traced, args=(inputs, targets)), axis=None)

    compiled: Callable[[Any, Any], Any] = step
    return compiled


def one_replica_step(model: Any, optimizer: Any, global_batch: int, change: Change = None) -> Callable[[Any, Any], Any]:
    """What each replica does with its share of a global batch. Returns its share of the loss.

    ``change`` makes the gradients that the optimizer gets.
    """

    def replica_step(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            errors = tf.reduce_mean(tf.square(targets - model(inputs, training=True)), axis=-1)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=global_batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients = change(gradients) if change else gradients
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return replica_step
