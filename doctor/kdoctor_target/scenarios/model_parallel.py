"""``keras.distribution.ModelParallel`` on JAX: variables are cut up, so that every device holds a share.

Measures: ``to be sharded``, how many variables the layout cuts; and those of ``inspect_weights``.
"""

from __future__ import annotations

from typing import Optional

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import PER_DEVICE, examples, inspect_weights, model_parallel, train, train_reference

STEPS = 6
LAYOUTS = {
    ".*hidden/kernel": (None, "model"),
    ".*hidden/bias": ("model",),
    ".*out/kernel": ("model", None),
}


def model_axis(case: Case) -> None:
    """All devices hold one model together; each computes with the whole batch."""
    _compare(case, None)


def data_and_model(case: Case) -> None:
    """Two devices hold a model together, and such pairs share out the batch."""
    _compare(case, 2)


def _compare(case: Case, shares: Optional[int]) -> None:
    distribution = model_parallel(case, LAYOUTS, shares=shares)
    devices = distribution.device_mesh.devices.size
    case.measure({"to be sharded": len(LAYOUTS)})
    data = examples(devices, STEPS)
    units = PER_DEVICE * devices  # divides, however many devices there are
    reference = train_reference(case, data, units=units)
    trained = train(case, distribution, data, units=units)
    inspect_weights(case, distribution, trained, reference)


CASES = {"model-axis": model_axis, "data-and-model": data_and_model}
