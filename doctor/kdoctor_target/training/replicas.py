"""The trainings that the built-in scenarios are made of.

TensorFlow is imported by the runner before this module, with the environment that it needs.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
import tensorflow as tf

from kdoctor_target.inspect.cuda import gpu_addresses
from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, FEATURES, LEARNING_RATE, regression
from kdoctor_target.training.steps import clock, step_seconds

__all__ = ["EPOCHS", "FEATURES", "LEARNING_RATE", "regression"]  # for the scenarios


class Batches(NamedTuple):
    """Examples in a fixed order, and how they are cut into global batches."""

    inputs: Any
    targets: Any
    global_batch: int
    drop_remainder: bool = False
    by_example: bool = False
    """Whether several workers share out the examples themselves, not the files that they come from."""

    def dataset(self) -> Any:
        """The batches as a ``tf.data.Dataset``."""
        dataset = tf.data.Dataset.from_tensor_slices((self.inputs, self.targets))
        dataset = dataset.batch(self.global_batch, drop_remainder=self.drop_remainder)
        if not self.by_example:
            return dataset
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        return dataset.with_options(options)

    def facts(self) -> Dict[str, Any]:
        """Examples, global batch and final batch, by the names of ``SmokeCase``'s fields."""
        examples = len(self.inputs)
        tail = 0 if self.drop_remainder else examples % self.global_batch
        return {
            "examples": examples - examples % self.global_batch if self.drop_remainder else examples,
            "global_batch": self.global_batch,
            "final_batch": tail or self.global_batch,
        }


def replica_devices(case: Case) -> List[str]:
    """The devices of the replicas. Call it before anything else touches a device.

    Where TensorFlow lists no GPU, the one device is the CPU, as in a user's job: kdoctor judges that.
    """
    if case.devices_kind == "cpu":
        wanted = case.replicas or 1
        one_thread_each(wanted)
        if wanted > 1:
            logical = [tf.config.LogicalDeviceConfiguration() for _ in range(wanted)]
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
        return [device.name for device in tf.config.list_logical_devices("CPU")]
    _compute_exactly()
    gpus = tf.config.list_physical_devices("GPU")
    wanted = len(gpus) if case.replicas is None else case.replicas
    addresses = gpu_addresses()
    # Where TensorFlow left a GPU out, its numbers are not CUDA's.
    case.note(gpus_seen=len(gpus), bus_ids=addresses[:wanted] if len(addresses) == len(gpus) else [])
    tf.config.set_visible_devices(gpus[:wanted], "GPU")
    names = [device.name for device in tf.config.list_logical_devices("GPU")]
    return names or [tf.config.list_logical_devices("CPU")[0].name]


def one_thread_each(replicas: int) -> None:
    """Compute exactly, and with few threads on the CPU.

    Cases run side by side there, and the models are tiny: more threads only get in each other's way.
    """
    _compute_exactly()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, replicas))


def _compute_exactly() -> None:
    # TensorFloat-32 keeps ten bits of a product's factors: equality with one device could not be told.
    tf.config.experimental.enable_tensor_float_32_execution(False)  # noqa: FBT003 - TensorFlow's signature


def make_strategy(case: Case) -> Any:
    """A ``MirroredStrategy`` over the replicas that were asked for, or as many as there are."""
    case.phase("strategy")
    strategy = tf.distribute.MirroredStrategy(replica_devices(case))
    describe_strategy(case, strategy)
    return strategy


def describe_strategy(case: Case, strategy: Any) -> None:
    """Note the strategy's class, replicas and devices."""
    case.note(
        strategy=type(strategy).__name__,
        replicas=strategy.num_replicas_in_sync,
        devices=list(strategy.extended.worker_devices),
    )


def make_model(*, normalised: bool) -> Any:
    """Dense - (BatchNormalization) - Dense, with the same initial weights every time it is made."""
    layers = tf.keras.layers
    middle = [layers.BatchNormalization(name="normalise")] if normalised else []
    return tf.keras.Sequential(
        [
            layers.InputLayer((FEATURES,)),
            layers.Dense(8, activation="tanh", kernel_initializer=_initializer(1), name="hidden"),
            *middle,
            layers.Dense(1, kernel_initializer=_initializer(2), name="out"),
        ]
    )


def _initializer(seed: int) -> Any:
    return tf.keras.initializers.GlorotUniform(seed=seed)


def compile_model(case: Case, model: Any) -> Any:
    """Compile with SGD; returns the model."""
    optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
    # XLA off: under a strategy Keras turns it off anyway, and one device must compute in the same way.
    model.compile(optimizer=optimizer, loss="mean_squared_error", metrics=["mae"], jit_compile=False)
    case.note(optimizer=type(optimizer).__name__)
    return model


class Reference(NamedTuple):
    """What the same training gives on one device."""

    losses: List[float]
    weights: List[Any]


def train_reference(case: Case, batches: Batches, *, normalised: bool) -> Reference:
    """Train on one device, with the same initial weights and the same global batches."""
    case.phase("reference")
    model = compile_model(case, make_model(normalised=normalised))
    losses = _fit(model, batches, []).history["loss"]
    case.note(reference_losses=losses)
    return Reference(losses, model.get_weights())


def train_mirrored(case: Case, strategy: Any, batches: Batches, *, normalised: bool) -> Any:
    """Build model, optimizer and metrics in the strategy's scope and train; returns the model."""
    case.phase("build")
    started = time.perf_counter()
    with strategy.scope():
        model = compile_model(case, make_model(normalised=normalised))
    case.note(build_s=time.perf_counter() - started)
    train(case, model, batches)
    return model


def train(case: Case, model: Any, batches: Batches) -> None:
    """Fit the model, and note its losses and the time of its steps."""
    case.phase("data")
    case.note(**batches.facts())
    steps = clock(case, tf.keras)
    losses = _fit(model, batches, [steps]).history["loss"]
    case.note(losses=losses, **step_seconds(steps.seconds))


def _fit(model: Any, batches: Batches, callbacks: List[Any]) -> Any:
    return model.fit(batches.dataset(), epochs=EPOCHS, verbose=0, shuffle=False, callbacks=callbacks)


def inspect_weights(case: Case, strategy: Any, model: Any, reference: Optional[Reference] = None) -> None:
    """Note what the variables hold on every replica, and how far they are from one device's."""
    case.phase("inspect")
    replicas = set(strategy.extended.worker_devices)
    trainable = [read_copies(strategy, variable) for variable in model.trainable_variables]
    mirrored = [copies for copies in trainable if {copy.device for copy in copies} == replicas]
    case.note(
        weights={
            "variables": len(trainable),
            "mirrored": len(mirrored),
            "nonfinite": sorted(set(_nonfinite(strategy, model.variables))),
            "replicas_agree": all(map(_all_equal, mirrored)) if mirrored else None,
        }
    )
    if reference:
        case.note(weight_deviation=_deviation(strategy, model, reference))


def read_copies(strategy: Any, variable: Any) -> Sequence[Any]:
    """The variable's copy on each replica: Keras 3 wraps TensorFlow's variable, Keras 2 hands it out."""
    inner = variable if callable(variable.value) else variable.value
    copies: Sequence[Any] = strategy.experimental_local_results(inner)
    return copies


def _nonfinite(strategy: Any, variables: Sequence[Any]) -> Iterator[str]:
    for variable in variables:
        if not all(np.isfinite(copy.numpy()).all() for copy in read_copies(strategy, variable)):
            yield getattr(variable, "path", variable.name)


def _all_equal(copies: Sequence[Any]) -> bool:
    first = copies[0].numpy()
    return all(np.array_equal(first, copy.numpy(), equal_nan=True) for copy in copies[1:])


def _deviation(strategy: Any, model: Any, reference: Reference) -> float:
    """Largest absolute difference over all weights, trainable or not, and all replicas; NaN if there is one."""
    differences: List[float] = [
        np.max(np.abs(copy.numpy() - weight))
        for variable, weight in zip(model.weights, reference.weights)  # noqa: B905 - Python 3.8
        for copy in read_copies(strategy, variable)
    ]
    return float(np.max(differences))


def count_nonfinite(strategy: Any, model: Any) -> int:
    """How many variables hold a NaN or an infinity on any replica."""
    return len(set(_nonfinite(strategy, model.variables)))
