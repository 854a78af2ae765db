"""Features of real jobs over several replicas: clipping, several steps per execution; and alternatives.

Measures: see ``kdoctor_target.training.clipping`` and ``kdoctor_target.training.random_numbers``.
"""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.clipping import ClipsInStep, clipping_job, compare_clipped
from kdoctor_target.training.compared import History, Job, compare, model_of
from kdoctor_target.training.custom_loop import one_replica_step
from kdoctor_target.training.random_numbers import IMAGES, SEED, SIDE, STEPS, ReplicaDropout, compare_masks, count_equal
from kdoctor_target.training.regression import EPOCHS, Batches, dense_model
from kdoctor_target.training.replicas import make_strategy


def clips(way: str) -> Callable[[Case], None]:
    """A case that clips in this way."""
    return lambda case: compare_clipped(case, way)


def clip_after_reduction(case: Case) -> None:
    """An alternative: add up the gradients of the replicas in train_step, then clip them."""
    compare_clipped(case, "global_clipnorm", Job(model=model_of(ClipsInStep)))


def tf_keras(case: Case) -> None:
    """An alternative: clipping, and several steps per execution, with Keras 2."""
    try:
        import tf_keras as keras
    except ImportError:
        case.skip("tf_keras is not installed")
    job = clipping_job(keras, "global_clipnorm")
    compare(case, job._replace(model=lambda: dense_model(keras), compile=lambda: {"steps_per_execution": 2}))


def steps_per_execution(case: Case) -> None:
    """Two steps in each call of the compiled function."""
    compare(case, Job(compile=lambda: {"steps_per_execution": 2}))


def steps_in_function(case: Case) -> None:
    """An alternative: a custom loop that runs two steps in each call of a tf.function."""
    compare(case, Job(fit=_two_steps_in_function), Job())


def _two_steps_in_function(model: Any, batches: Batches) -> History:
    strategy = model.distribute_strategy
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)
    replica_step = one_replica_step(model, model.optimizer, batches.global_batch)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def two_steps(iterator: Any) -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(2):
            total += strategy.reduce("SUM", strategy.run(replica_step, args=next(iterator)), axis=None)
        return total

    data = strategy.experimental_distribute_dataset(batches.dataset())
    steps = len(batches.inputs) // batches.global_batch
    losses = []
    for _ in range(EPOCHS):
        iterator = iter(data)
        losses.append(sum(float(two_steps(iterator)) for _ in range(steps // 2)) / steps)
    return {"loss": losses}


def dropout_per_replica(case: Case) -> None:
    """An alternative: a Dropout layer that adds the replica's index to its seed."""
    if not hasattr(tf.keras, "random"):
        case.skip("Keras 2 needs no alternative: its layers have no SeedGenerator")
    compare_masks(case, lambda: ReplicaDropout(0.5, seed=SEED))


def augmented_in_map(case: Case) -> None:
    """An alternative: augment in Dataset.map, before the batch is split among the replicas."""
    strategy = make_strategy(case)
    case.phase("build")
    layer = tf.keras.layers.RandomTranslation(0.4, 0.4, seed=SEED)
    image = tf.reshape(tf.range(SIDE * SIDE, dtype=tf.float32), (SIDE, SIDE, 1))
    images = tf.data.Dataset.from_tensors(image).repeat(STEPS * IMAGES).batch(IMAGES)
    data = strategy.experimental_distribute_dataset(images.map(lambda batch: layer(batch, training=True)))
    case.phase("train")
    count_equal(case, [[one.numpy().tobytes() for one in strategy.experimental_local_results(each)] for each in data])


CASES = {"global-clipnorm": clips("global_clipnorm"), "clipvalue": clips("clipvalue")}
