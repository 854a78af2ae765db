"""Mistakes in the layouts of ``keras.distribution.ModelParallel``; each case intends to shard one variable."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import fit, inspect_weights, make_model, model_parallel, train, train_reference
from kdoctor_target.training.regression import PER_REPLICA, make_batches

STEPS = 4


def matches_nothing(case: Case) -> None:
    """No variable has the path in the layout map, as after a layer was renamed."""
    _train(case, ".*renamed/kernel")


def partial_path(case: Case) -> None:
    """The key is the end of a variable's path, without a leading ``.*``."""
    _train(case, "hidden/kernel")


def not_divisible(case: Case) -> None:
    """The sharded dimension is one longer than a multiple of the mesh axis."""
    _train(case, ".*hidden/kernel", odd=1)


def unknown_axis(case: Case) -> None:
    """The layout names an axis that the mesh does not have."""
    _train(case, ".*hidden/kernel", axis="modell")


def model_outside(case: Case) -> None:
    """The model is built before the distribution is set, and trained after that."""
    _train(case, ".*hidden/kernel", outside=True)


def _train(case: Case, path: str, *, axis: str = "model", odd: int = 0, outside: bool = False) -> None:
    distribution = model_parallel(case, {path: (None, axis)})
    devices = distribution.device_mesh.devices.size
    data, units = make_batches(devices, STEPS), PER_REPLICA * devices + odd
    reference = train_reference(case, data, units=units)
    if outside:
        case.phase("build")
        model = make_model(units=units)
        with distribution.scope():
            fit(case, model, data)
    else:
        model = train(case, distribution, data, units=units)
    inspect_weights(case, distribution, model, reference)
