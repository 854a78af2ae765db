"""Trainings with TensorFlow over the replicas of a strategy.

The runner has prepared the environment and imported TensorFlow before it loads this module.
"""

from __future__ import annotations

import time
from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from kdoctor_target.inspect.cuda import gpu_addresses
from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, Reference, dense_model
from kdoctor_target.training.steps import clock, step_seconds


def replica_devices(case: Case) -> List[str]:
    """The devices of the replicas. Call it before anything else uses a device.

    If TensorFlow lists no GPU, the only device is the CPU, as in a user's job; a check reports that.
    """
    if case.devices_kind == "cpu":
        wanted = case.replicas or 1
        one_thread_each(wanted)
        if wanted > 1:
            logical = [tf.config.LogicalDeviceConfiguration() for _ in range(wanted)]
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
        return [device.name for device in tf.config.list_logical_devices("CPU")]
    compute_exactly()
    gpus = tf.config.list_physical_devices("GPU")
    wanted = len(gpus) if case.replicas is None else case.replicas
    addresses = gpu_addresses()
    # If TensorFlow skipped a GPU, its indices differ from CUDA's.
    case.note(gpus_seen=len(gpus), bus_ids=addresses[:wanted] if len(addresses) == len(gpus) else [])
    tf.config.set_visible_devices(gpus[:wanted], "GPU")
    names = [device.name for device in tf.config.list_logical_devices("GPU")]
    return names or [tf.config.list_logical_devices("CPU")[0].name]


def one_thread_each(replicas: int) -> None:
    """Compute exactly, and with few threads on the CPU, where several cases with tiny models run at once."""
    compute_exactly()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, replicas))


def compute_exactly() -> None:
    """Turn off TensorFloat-32, whose 10-bit factors are too coarse to compare weights between devices."""
    tf.config.experimental.enable_tensor_float_32_execution(False)  # noqa: FBT003 - TensorFlow's signature


def make_strategy(case: Case) -> Any:
    """A ``MirroredStrategy`` over the requested replicas, or all that exist."""
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


def make_model(**options: Any) -> Any:
    """The model of the scenarios (see :func:`dense_model`), not compiled."""
    return dense_model(tf.keras, **options)


def compile_model(case: Case, model: Any) -> Any:
    """Compile the model with SGD and return it."""
    optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
    # Keras turns XLA off under a strategy, so it must be off on one device, too.
    model.compile(optimizer=optimizer, loss="mean_squared_error", metrics=["mae"], jit_compile=False)
    case.note(optimizer=type(optimizer).__name__)
    return model


def compiled_model(case: Case, **options: Any) -> Any:
    """The model of the scenarios, compiled with SGD."""
    return compile_model(case, make_model(**options))


def train_reference(case: Case, batches: Batches, **options: Any) -> Reference:
    """Train on one device, with the same initial weights and the same global batches."""
    case.phase("reference")
    return fit_reference(case, compiled_model(case, **options), batches)


def fit_reference(case: Case, model: Any, batches: Batches) -> Reference:
    """Train a compiled model on one device."""
    losses = _fit(model, batches, []).history["loss"]
    case.note(reference_losses=losses)
    return Reference(losses, model.get_weights())


def train_mirrored(case: Case, strategy: Any, batches: Batches, **options: Any) -> Any:
    """Build model, optimizer and metrics in the strategy's scope and train; returns the model."""
    case.phase("build")
    started = time.perf_counter()
    with strategy.scope():
        model = compiled_model(case, **options)
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
    """Note the state of the variables on every replica, and how much they differ from one device's."""
    case.phase("inspect")
    replicas = set(strategy.extended.worker_devices)
    trainable = [read_copies(strategy, variable) for variable in model.trainable_variables]
    mirrored = [copies for copies in trainable if {copy.device for copy in copies} == replicas]
    case.note(
        weights={
            "variables": len(trainable),
            "mirrored": len(mirrored),
            "nonfinite": nonfinite(strategy, model),
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


def nonfinite(strategy: Any, model: Any) -> List[str]:
    """Names of the variables that hold a NaN or an infinity on any replica."""
    return sorted(
        {
            getattr(variable, "path", variable.name)
            for variable in model.variables
            if not all(np.isfinite(copy.numpy()).all() for copy in read_copies(strategy, variable))
        }
    )


def _all_equal(copies: Sequence[Any]) -> bool:
    first = copies[0].numpy()
    return all(np.array_equal(first, copy.numpy(), equal_nan=True) for copy in copies[1:])


def _deviation(strategy: Any, model: Any, reference: Reference) -> float:
    """Largest absolute difference over all weights, trainable or not, and all replicas; NaN if there is one."""
    differences: List[float] = [
        np.max(np.abs(copy.numpy() - weight))
        for variable, weight in zip(model.weights, reference.weights)
        for copy in read_copies(strategy, variable)
    ]
    return float(np.max(differences))
