"""``keras.distribution.ModelParallel`` on JAX: variables are sharded over the devices.

Measures: ``to be sharded``, the number of variables that the layouts shard; and those of ``inspect_weights``.
"""

from __future__ import annotations

from typing import Optional

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import inspect_weights, model_parallel, train, train_reference
from kdoctor_target.training.regression import PER_REPLICA, make_batches

LAYOUTS = {".*hidden/kernel": (None, "model"), ".*hidden/bias": ("model",), ".*out/kernel": ("model", None)}


def model_axis(case: Case) -> None:
    """All devices hold one model together, and each computes the whole batch."""
    _compare(case, None)


def data_and_model(case: Case) -> None:
    """Two devices hold a model together, and the batch is sharded over such pairs."""
    _compare(case, 2)


def _compare(case: Case, shares: Optional[int]) -> None:
    distribution = model_parallel(case, LAYOUTS, shares=shares)
    devices = distribution.device_mesh.devices.size
    case.measure({"to be sharded": len(LAYOUTS)})
    data, units = make_batches(devices), PER_REPLICA * devices  # divisible by any number of devices
    reference = train_reference(case, data, units=units)
    model = train(case, distribution, data, units=units)
    inspect_weights(case, distribution, model, reference)
