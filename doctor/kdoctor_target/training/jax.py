"""The trainings of the scenarios about ``keras.distribution``: Keras 3 on JAX, over the devices of a mesh.

JAX and Keras are imported by the runner before this module, where they are installed, with the environment that
they need; where they are not, no case comes here.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, FEATURES, LEARNING_RATE, regression
from kdoctor_target.training.steps import clock, step_seconds

PER_DEVICE = 8
MOMENTUM = 0.9
"""Momentum has a variable for each weight: where that lives is a part of what is tried. It stays proportional to the
gradient, as plain SGD is."""


class Examples(NamedTuple):
    """Examples in a fixed order, and how many make a global batch."""

    inputs: Any
    targets: Any
    global_batch: int

    def facts(self) -> Dict[str, int]:
        """By the names of ``SmokeCase``'s fields."""
        count = len(self.inputs)
        return {
            "examples": count,
            "global_batch": self.global_batch,
            "final_batch": count % self.global_batch or self.global_batch,
        }


def examples(devices: int, steps: int, tail: int = 0) -> Examples:
    """So many full batches for that many devices, and a smaller one."""
    batch = PER_DEVICE * devices
    return Examples(*regression(steps * batch + tail), batch)


def devices(case: Case, shares: int = 1) -> List[str]:
    """Names of the devices to train on, in Keras's words; it is where a case learns that it is not for here.

    Args:
        case: the case that trains.
        shares: how many devices make one replica. On the CPU there are as many more; of GPUs, as there are.

    Raises:
        NotHere: Keras knows no distribution, or JAX has too few devices.
    """
    case.phase("strategy")
    _require(case)
    import jax
    import keras

    # TensorFloat-32 keeps ten bits of a product's factors: equality with one device could not be told.
    jax.config.update("jax_default_matmul_precision", "highest")
    # Keras changes no backend once it is imported: if the user's settings were stronger, nothing here would be JAX.
    if keras.backend.backend() != "jax":
        case.skip("this Keras computes with {}".format(keras.backend.backend()))
    if case.devices_kind == "cpu":
        wanted = shares * (case.replicas or 1)
        return [str(name) for name in keras.distribution.list_devices("cpu")[:wanted]]
    listed = [one for one in jax.devices() if one.platform == "gpu"]
    case.note(gpus_seen=len(listed))
    if not listed:
        _without_gpus(case)
    wanted = len(listed) if case.replicas is None else min(case.replicas, len(listed))
    if wanted < shares:
        case.skip("{} GPUs are needed, and there are {}".format(shares, wanted))
    return [str(name) for name in keras.distribution.list_devices("gpu")[: wanted - wanted % shares]]


def _require(case: Case) -> None:
    import keras

    if not hasattr(keras, "distribution") or not hasattr(keras, "backend"):
        case.skip("keras {} has no keras.distribution: it came with Keras 3".format(keras.__version__))


def _without_gpus(case: Case) -> None:
    plugins = [name for name in ("jax_cuda12_plugin", "jax_cuda13_plugin") if importlib.util.find_spec(name)]
    if plugins:
        raise RuntimeError("JAX finds no GPU, though {} is installed".format(" and ".join(plugins)))
    case.skip("this JAX is for CPUs: install jax[cuda12] to train on GPUs")


def describe(case: Case, distribution: Any) -> None:
    """Note the distribution's class and the devices of its mesh."""
    names = [str(name) for name in np.ravel(distribution.device_mesh.devices)]
    case.note(strategy=type(distribution).__name__, replicas=len(names), devices=names)


def data_parallel(case: Case) -> Any:
    """``DataParallel`` over the devices that were asked for."""
    names = devices(case)
    import keras

    distribution = keras.distribution.DataParallel(devices=names)
    describe(case, distribution)
    return distribution


def model_parallel(case: Case, layouts: Dict[str, Tuple[Optional[str], ...]], *, shares: Optional[int] = None) -> Any:
    """``ModelParallel`` with that layout for each path, on a mesh of two axes, ``batch`` and ``model``.

    Args:
        case: the case that trains.
        layouts: pattern of a variable's path to the axis of the mesh that cuts each of its dimensions.
        shares: size of the axis ``model``; all devices if None.
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
    # A Keras before 3.5 wants the mesh, too.
    distribution = keras.distribution.ModelParallel(device_mesh=mesh, layout_map=layout_map, batch_dim_name="batch")
    describe(case, distribution)
    return distribution


def make_model(*, normalised: bool = False, units: int = 8) -> Any:
    """Dense - (BatchNormalization) - Dense with the same initial weights every time, compiled with SGD."""
    import keras

    layers = keras.layers
    middle = [layers.BatchNormalization(name="normalise")] if normalised else []
    model = keras.Sequential(
        [
            layers.Input((FEATURES,)),
            layers.Dense(units, activation="tanh", kernel_initializer=_initializer(keras, 1), name="hidden"),
            *middle,
            layers.Dense(1, kernel_initializer=_initializer(keras, 2), name="out"),
        ]
    )
    optimizer = keras.optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM)
    model.compile(optimizer=optimizer, loss="mean_squared_error", metrics=["mae"])
    return model


def _initializer(keras: Any, seed: int) -> Any:
    return keras.initializers.GlorotUniform(seed=seed)


class Reference(NamedTuple):
    """What the same training gives on one device."""

    losses: List[float]
    weights: List[Any]


def train_reference(case: Case, data: Examples, **model: Any) -> Reference:
    """Train on one device, with the same initial weights and the same global batches."""
    case.phase("reference")
    alone = make_model(**model)
    losses = _fit(alone, data, []).history["loss"]
    case.note(reference_losses=losses)
    return Reference(losses, alone.get_weights())


def train(case: Case, distribution: Any, data: Examples, **model: Any) -> Any:
    """Make the model in the distribution's scope and train it there; returns the model."""
    case.phase("build")
    started = time.perf_counter()
    with distribution.scope():
        made = make_model(**model)
        case.note(build_s=time.perf_counter() - started, optimizer=type(made.optimizer).__name__)
        fit(case, made, data)
    return made


def fit(case: Case, model: Any, data: Examples) -> None:
    """Train a model that was made, and note its losses and the time of its steps."""
    import jax
    import keras

    case.phase("data")
    case.note(**data.facts())
    # JAX promises a step's numbers and goes on: wait for them, or a hang would show in a later step than its own.
    steps = clock(case, keras, jax.block_until_ready)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Keras says that an epoch has no whole number of batches
        losses = _fit(model, data, [steps]).history["loss"]
    case.note(losses=losses, **step_seconds(steps.seconds))


def _fit(model: Any, data: Examples, callbacks: List[Any]) -> Any:
    return model.fit(
        data.inputs,
        data.targets,
        batch_size=data.global_batch,
        epochs=EPOCHS,
        verbose=0,
        shuffle=False,
        callbacks=callbacks,
    )


def inspect_weights(case: Case, distribution: Any, model: Any, reference: Optional[Reference] = None) -> None:
    """Note where the variables live, what they hold on every device, and how far they are from one device's.

    Measures: ``optimizer variables`` and ``optimizer sharded``, those of its variables that belong to a weight and
    how many of them are cut up; ``largest share``, the bytes of weights on the fullest device, of all weights' bytes.
    """
    case.phase("inspect")
    everywhere = [str(name) for name in np.ravel(distribution.device_mesh.devices)]
    trainable = [_parts(variable) for variable in model.trainable_variables]
    slots = [_parts(one) for one in model.optimizer.variables if len(one.shape) and "momentum" in one.path]
    case.note(
        weights={
            "variables": len(trainable),
            "mirrored": sum(_is_mirrored(parts, everywhere) for parts in trainable),
            "sharded": sum(_is_sharded(parts, everywhere) for parts in trainable),
            "nonfinite": [one.path for one in model.variables if not _is_finite(one)],
            "replicas_agree": all(map(_copies_agree, trainable)) if trainable else None,
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
        pairs = zip(model.weights, reference.weights)  # noqa: B905 - Python 3.8
        case.note(weight_deviation=float(np.max([np.max(np.abs(np.asarray(one.value) - two)) for one, two in pairs])))


class _Part(NamedTuple):
    """What one device holds of a variable."""

    device: str
    share: str
    values: Any
    whole: bool


def _parts(variable: Any) -> Sequence[_Part]:
    array = variable.value
    return [
        _Part(
            "{}:{}".format(shard.device.platform, shard.device.id),
            str(shard.index),
            np.asarray(shard.data),
            shard.data.shape == array.shape,
        )
        for shard in array.addressable_shards
    ]


def _is_mirrored(parts: Sequence[_Part], everywhere: Sequence[str]) -> bool:
    return {part.device for part in parts} == set(everywhere) and all(part.whole for part in parts)


def _is_sharded(parts: Sequence[_Part], everywhere: Sequence[str]) -> bool:
    return {part.device for part in parts} == set(everywhere) and not any(part.whole for part in parts)


def _copies_agree(parts: Sequence[_Part]) -> bool:
    """Whether devices that hold the same part of a variable hold the same values."""
    first: Dict[str, Any] = {}
    return all(np.array_equal(first.setdefault(part.share, part.values), part.values, equal_nan=True) for part in parts)


def _bytes_on(device: str, parts: Sequence[_Part]) -> int:
    return sum(int(part.values.nbytes) for part in parts if part.device == device)


def _is_finite(variable: Any) -> bool:
    return all(bool(np.isfinite(part.values).all()) for part in _parts(variable))
