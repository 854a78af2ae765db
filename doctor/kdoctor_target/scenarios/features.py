"""Features of real jobs over several replicas: clipping, steps_per_execution, a late optimizer, Dropout.

Measures of the clipping cases: ``reference_way``, the largest distance that a variable moved on one device, and
``longest_way``, the largest distance that clipped steps allow. Measures of the Dropout cases: ``masks``, the number of
compared steps, and ``equal_masks``, those in which two replicas had the same mask.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import Job, compare, model_of
from kdoctor_target.training.custom_loop import train_custom_loop
from kdoctor_target.training.regression import EPOCHS, FEATURES, LEARNING_RATE, STEPS, make_batches
from kdoctor_target.training.replicas import fit_reference, inspect_weights, make_model, make_strategy

NORM = 0.05
"""A tenth and less of the norm of each gradient here, so that every step is clipped."""
VALUE = 0.02
UNITS = 64
"""Elements of a mask. Two masks of rate 0.5 are equal by chance once in 2 ** 64 times."""
MASKS = 3


def clipnorm(case: Case) -> None:
    """Each variable's gradient is scaled to a norm."""
    _clipped(case, {"clipnorm": NORM}, NORM)


def global_clipnorm(case: Case) -> None:
    """All gradients together are scaled to a norm."""
    _clipped(case, {"global_clipnorm": NORM}, NORM)


def clipvalue(case: Case) -> None:
    """Each element of a gradient is limited; the largest variable has 8 * FEATURES elements."""
    _clipped(case, {"clipvalue": VALUE}, VALUE * float(np.sqrt(8 * FEATURES)))


def clip_after_reduction(case: Case) -> None:
    """The alternative: add up the gradients of the replicas in train_step, then clip them."""
    _clipped(case, {"global_clipnorm": NORM}, NORM, Job(model=model_of(ClipsInStep)))


def steps_per_execution(case: Case) -> None:
    """Two steps in each call of the compiled function."""
    compare(case, Job(compile=lambda: {"steps_per_execution": 2}))


def optimizer_built_late(case: Case) -> None:
    """A custom loop whose first step builds Adam."""
    _loop(case, build=False)


def optimizer_built_in_scope(case: Case) -> None:
    """The alternative: ``optimizer.build(model.trainable_variables)`` in the scope."""
    _loop(case, build=True)


def dropout(case: Case) -> None:
    """The masks of Keras's Dropout on each replica."""
    _masks(case, lambda: tf.keras.layers.Dropout(0.5, seed=3))


def dropout_per_replica(case: Case) -> None:
    """The alternative: a Dropout layer that adds the replica's index to its seed."""
    if not hasattr(tf.keras, "random"):
        case.skip("Keras 2 needs no alternative: its layers have no SeedGenerator")
    _masks(case, lambda: ReplicaDropout(0.5, seed=3))


def _clipped(case: Case, options: Dict[str, float], norm: float, job: Optional[Job] = None) -> None:
    """Compare SGD that clips, on one device, with the same job or another one."""
    clips = Job(lambda: tf.keras.optimizers.SGD(LEARNING_RATE, **options))
    single = compare(case, job or clips, clips).single
    ways = [float(np.linalg.norm(after - before)) for before, after in zip(single.started, single.model.get_weights())]
    case.measure({"reference_way": max(ways), "longest_way": EPOCHS * STEPS * LEARNING_RATE * norm})


class ClipsInStep(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types here
    """Clips the sum of the replicas' gradients. The optimizer adds up the replicas again, so each adds its share."""

    def train_step(self, data: Any) -> Any:
        """Clip the gradient of the global batch."""
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss: Any = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce("sum", tape.gradient(loss, self.trainable_variables))
        gradients, _ = tf.clip_by_global_norm(gradients, NORM)
        shares = [gradient / replica.num_replicas_in_sync for gradient in gradients]
        optimizer: Any = self.optimizer
        optimizer.apply_gradients(zip(shares, self.trainable_variables))
        total = replica.all_reduce("sum", loss)
        for metric in self.metrics:  # the loss only: the model has no other metrics
            metric.update_state(total)
        return {metric.name: metric.result() for metric in self.metrics}


def _loop(case: Case, *, build: bool) -> None:
    strategy = make_strategy(case)
    batches = make_batches(strategy.num_replicas_in_sync)
    case.phase("reference")
    single = make_model()
    single.compile(optimizer=_adam(), loss="mean_squared_error", jit_compile=False)
    reference = fit_reference(case, single, batches)
    model = train_custom_loop(case, strategy, batches, _adam, build=build)
    inspect_weights(case, strategy, model, reference)


def _adam() -> Any:
    return tf.keras.optimizers.Adam(0.01)


class ReplicaDropout(tf.keras.layers.Dropout):  # type: ignore[misc]  # TensorFlow has no types here
    """Dropout whose seed includes the index of the replica."""

    def call(self, inputs: Any, training: bool = False) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        """Drop on each replica by its own mask."""
        if not training:
            return inputs
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.cast(self.seed_generator.next(), tf.int32) + tf.stack([0, tf.cast(replica, tf.int32)])
        return tf.nn.experimental.stateless_dropout(inputs, self.rate, seed=seed)


def _masks(case: Case, make: Callable[[], Any]) -> None:
    strategy = make_strategy(case)
    case.phase("build")
    ones = tf.ones((1, UNITS))
    with strategy.scope():
        layer = make()
        layer(ones)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step() -> Any:
        return strategy.run(lambda: layer(ones, training=True))

    case.phase("train")
    equal = 0
    for _ in range(MASKS):
        masks = [mask.numpy() for mask in strategy.experimental_local_results(step())]
        equal += len({mask.tobytes() for mask in masks}) < len(masks)
    case.measure({"masks": MASKS, "equal_masks": equal})


CASES = {
    "clipnorm": clipnorm,
    "global-clipnorm": global_clipnorm,
    "clipvalue": clipvalue,
    "clip-after-reduction": clip_after_reduction,
    "steps-per-execution": steps_per_execution,
    "optimizer-built-late": optimizer_built_late,
    "optimizer-built-in-scope": optimizer_built_in_scope,
    "dropout": dropout,
    "dropout-per-replica": dropout_per_replica,
}
