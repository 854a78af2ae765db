"""Trainings with Keras 3 on JAX, over the devices of a ``keras.distribution`` mesh.

The runner has prepared the environment and imported JAX and Keras before it loads this module. Where they are not
installed, the cases are skipped before that.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kdoctor_target.inspect.cuda import gpu_addresses
from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, Reference, dense_model
from kdoctor_target.training.steps import clock, step_seconds

MOMENTUM = 0.9
"""Momentum adds a variable for each weight, whose placement is tested, too. Steps stay proportional to the gradient."""


def devices(case: Case, shares: int = 1) -> List[str]:
    """The names of the devices to train on, as Keras writes them.

    Args:
        case: the case that trains.
        shares: devices per replica. On the CPU, that many times more devices are used; the number of GPUs is fixed.

    Raises:
        NotHere: this Keras has no ``keras.distribution``, or JAX has too few devices.
    """
    require(case)
    import jax
    import keras

    if case.devices_kind == "cpu":
        wanted = shares * (case.replicas or 1)
        return [str(name) for name in keras.distribution.list_devices("cpu")[:wanted]]
    listed = [one for one in jax.devices() if one.platform == "gpu"]
    case.note(gpus_seen=len(listed))
    if not listed:
        _without_gpus(case)
    wanted = len(listed) if case.replicas is None else min(case.replicas, len(listed))
    if wanted < shares:
        case.skip(f"{shares} GPUs are required, {wanted} available")
    wanted -= wanted % shares
    addresses = gpu_addresses()
    case.note(bus_ids=addresses[:wanted] if len(addresses) == len(listed) else [])
    return [str(name) for name in keras.distribution.list_devices("gpu")[:wanted]]


def require(case: Case) -> None:
    """Compute exactly. It uses no device.

    Raises:
        NotHere: this Keras has no ``keras.distribution``, or another backend.
    """
    import jax
    import keras

    if not hasattr(keras, "distribution") or not hasattr(keras, "backend"):
        case.skip(f"keras {keras.__version__} has no keras.distribution (added in Keras 3)")
    # TensorFloat-32 is too coarse to compare weights between devices.
    jax.config.update("jax_default_matmul_precision", "highest")
    # Keras cannot change its backend after its import; a user's setting may have won over ours.
    if keras.backend.backend() != "jax":
        case.skip(f"Keras uses the {keras.backend.backend()} backend")


def _without_gpus(case: Case) -> None:
    plugins = [name for name in ("jax_cuda12_plugin", "jax_cuda13_plugin") if importlib.util.find_spec(name)]
    if plugins:
        raise RuntimeError(f"JAX finds no GPU, although {' and '.join(plugins)} is installed")
    case.skip("JAX is installed without GPU support: install jax[cuda13] (driver 580 or newer) or jax[cuda12]")


def describe(case: Case, distribution: Any) -> None:
    """Note the distribution's class and the devices of its mesh."""
    names = [str(name) for name in np.ravel(distribution.device_mesh.devices)]
    case.note(strategy=type(distribution).__name__, replicas=len(names), devices=names)


def data_parallel(case: Case) -> Any:
    """``DataParallel`` over the requested devices."""
    names = devices(case)
    import keras

    distribution = keras.distribution.DataParallel(devices=names)
    describe(case, distribution)
    return distribution


def model_parallel(case: Case, layouts: Dict[str, Tuple[Optional[str], ...]], *, shares: Optional[int] = None) -> Any:
    """``ModelParallel`` with these layouts, on a mesh with the axes ``batch`` and ``model``.

    Args:
        case: the case that trains.
        layouts: pattern of variable paths to the mesh axis that shards each dimension.
        shares: size of the ``model`` axis; all devices if None.
    """
    names = devices(case, shares or 1)
    import keras

    size = shares or len(names)
    mesh = keras.distribution.DeviceMesh((len(names) // size, size), ["batch", "model"], devices=names)
    case.note(replicas=len(names), devices=names)
    case.phase("build")
    layout_map = keras.distribution.LayoutMap(mesh)
    for path, axes in layouts.items():
        layout_map[path] = keras.distribution.TensorLayout(axes, mesh)
    # Keras before 3.5 requires the mesh, too.
    distribution = keras.distribution.ModelParallel(device_mesh=mesh, layout_map=layout_map, batch_dim_name="batch")
    describe(case, distribution)
    return distribution


def make_model(**options: Any) -> Any:
    """The model of the scenarios (see :func:`dense_model`), compiled with SGD."""
    import keras

    model = dense_model(keras, **options)
    optimizer = keras.optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM)
    model.compile(optimizer=optimizer, loss="mean_squared_error", weighted_metrics=["mae"])
    return model


def train_reference(case: Case, data: Batches, **options: Any) -> Reference:
    """Train on one device, with the same initial weights and the same global batches."""
    case.phase("reference")
    model = make_model(**options)
    losses = _fit(model, data, []).history["loss"]
    case.note(reference_losses=losses)
    return Reference(losses, model.get_weights())


def train(case: Case, distribution: Any, data: Batches, **options: Any) -> Any:
    """Build the model in the distribution's scope and train it there; returns the model."""
    case.phase("build")
    started = time.perf_counter()
    with distribution.scope():
        model = make_model(**options)
        case.note(build_s=time.perf_counter() - started, optimizer=type(model.optimizer).__name__)
        fit(case, model, data)
    return model


def fit(case: Case, model: Any, data: Batches) -> None:
    """Fit a compiled model, and note its losses and the time of its steps."""
    import jax
    import keras

    case.phase("data")
    case.note(**data.facts())
    # JAX dispatches steps asynchronously: wait for each one, or a hang would show in a later step.
    steps = clock(case, keras, jax.block_until_ready)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # from Keras, about a partial final batch
        losses = _fit(model, data, [steps]).history["loss"]
    case.note(losses=losses, **step_seconds(steps.seconds))


def _fit(model: Any, data: Batches, callbacks: List[Any]) -> Any:
    return model.fit(
        data.inputs,
        data.targets,
        batch_size=data.global_batch,
        epochs=EPOCHS,
        verbose=0,
        shuffle=False,
        callbacks=callbacks,
    )


def infer(case: Case, model: Any, phase: str, call: Callable[[], Any]) -> Any:
    """What an evaluation or a prediction returns. If it raises, note whether the model still has its weights.

    Measure: ``weights left``, 1 or 0.
    """
    case.phase(phase)
    try:
        return call()
    except Exception:
        case.measure({"weights left": float(_has_weights(model))})
        raise


def _has_weights(model: Any) -> bool:
    try:
        model.get_weights()
    except Exception:  # Keras 3.15.1 raises TypeError in a variable without a value
        return False
    return True


def inspect_weights(case: Case, distribution: Any, model: Any, reference: Optional[Reference] = None) -> None:
    """Note where the variables are, what each device holds, and how much they differ from one device's.

    Measures: ``optimizer variables``, the number of optimizer variables that belong to a weight; ``optimizer sharded``,
    how many of them are sharded; ``largest share``, the fullest device's share of the bytes of all weights.
    """
    case.phase("inspect")
    everywhere = [str(name) for name in np.ravel(distribution.device_mesh.devices)]
    trainable = [parts_of(variable) for variable in model.trainable_variables]
    slots = [parts_of(one) for one in model.optimizer.variables if len(one.shape) and "momentum" in one.path]
    case.note(
        weights={
            "variables": len(trainable),
            "mirrored": sum(is_mirrored(parts, everywhere) for parts in trainable),
            "sharded": sum(_is_sharded(parts, everywhere) for parts in trainable),
            "nonfinite": [one.path for one in model.variables if not _is_finite(one)],
            "replicas_agree": all(map(copies_agree, trainable)) if trainable else None,
        }
    )
    held = [sum(_bytes_on(name, parts) for parts in trainable) for name in everywhere]
    case.measure(
        {
            "optimizer variables": len(slots),
            "optimizer sharded": sum(_is_sharded(parts, everywhere) for parts in slots),
            "largest share": max(held) / sum(np.asarray(one.value).nbytes for one in model.trainable_variables),
        }
    )
    if reference:
        pairs = zip(model.weights, reference.weights)
        case.note(weight_deviation=float(np.max([np.max(np.abs(np.asarray(one.value) - two)) for one, two in pairs])))


class _Part(NamedTuple):
    """The part of a variable on one device."""

    device: str
    share: str
    values: Any
    whole: bool


def parts_of(variable: Any) -> Sequence[_Part]:
    """The parts of a variable on the devices."""
    array = variable.value
    return [
        _Part(
            f"{shard.device.platform}:{shard.device.id}",
            str(shard.index),
            np.asarray(shard.data),
            shard.data.shape == array.shape,
        )
        for shard in array.addressable_shards
    ]


def is_mirrored(parts: Sequence[_Part], everywhere: Sequence[str]) -> bool:
    """Whether every device holds the whole variable."""
    return {part.device for part in parts} == set(everywhere) and all(part.whole for part in parts)


def _is_sharded(parts: Sequence[_Part], everywhere: Sequence[str]) -> bool:
    return {part.device for part in parts} == set(everywhere) and not any(part.whole for part in parts)


def copies_agree(parts: Sequence[_Part]) -> bool:
    """Whether devices that hold the same part of a variable hold equal values."""
    first: Dict[str, Any] = {}
    return all(np.array_equal(first.setdefault(part.share, part.values), part.values, equal_nan=True) for part in parts)


def _bytes_on(device: str, parts: Sequence[_Part]) -> int:
    return sum(int(part.values.nbytes) for part in parts if part.device == device)


def _is_finite(variable: Any) -> bool:
    return all(bool(np.isfinite(part.values).all()) for part in parts_of(variable))
