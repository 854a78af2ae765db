"""Mistakes with the layouts of ``keras.distribution.ModelParallel``; each was meant to cut one variable."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import (
    PER_DEVICE,
    examples,
    fit,
    inspect_weights,
    make_model,
    model_parallel,
    train,
    train_reference,
)

STEPS = 4

Layouts = Dict[str, Tuple[Optional[str], ...]]


def matches_nothing(case: Case) -> None:
    """No variable has the path that the map names, as after a layer was renamed."""
    _train(case, {".*renamed/kernel": (None, "model")})


def partial_path(case: Case) -> None:
    """The key is the end of a variable's path, with no ``.*`` before it."""
    _train(case, {"hidden/kernel": (None, "model")})


def not_divisible(case: Case) -> None:
    """The dimension that is to be cut is one longer than a multiple of the axis."""
    _train(case, {".*hidden/kernel": (None, "model")}, odd=1)


def unknown_axis(case: Case) -> None:
    """The layout names an axis that the mesh has not."""
    _train(case, {".*hidden/kernel": (None, "modell")})


def model_outside(case: Case) -> None:
    """The model is made before the distribution is set, and trained after."""
    distribution = model_parallel(case, {".*hidden/kernel": (None, "model")})
    devices = distribution.device_mesh.devices.size
    data, units = examples(devices, STEPS), PER_DEVICE * devices
    reference = train_reference(case, data, units=units)
    case.phase("build")
    model = make_model(units=units)
    with distribution.scope():
        fit(case, model, data)
    inspect_weights(case, distribution, model, reference)


def _train(case: Case, layouts: Layouts, *, odd: int = 0) -> None:
    distribution = model_parallel(case, layouts)
    devices = distribution.device_mesh.devices.size
    data, units = examples(devices, STEPS), PER_DEVICE * devices + odd
    reference = train_reference(case, data, units=units)
    model = train(case, distribution, data, units=units)
    inspect_weights(case, distribution, model, reference)


CASES = {
    "matches-nothing": matches_nothing,
    "partial-path": partial_path,
    "not-divisible": not_divisible,
    "unknown-axis": unknown_axis,
    "model-outside": model_outside,
}
