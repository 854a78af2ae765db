"""Batches that do not divide over the devices of ``keras.distribution.DataParallel``."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import Examples, data_parallel, examples, inspect_weights, train, train_reference
from kdoctor_target.training.regression import regression

STEPS = 5


def uneven_tail(case: Case) -> None:
    """Every batch divides but the final one, which has an example for each device and more for some."""
    distribution = data_parallel(case)
    devices = distribution.device_mesh.devices.size
    _train(case, distribution, examples(devices, STEPS, tail=2 * devices - 1))


def uneven_batch(case: Case) -> None:
    """No batch divides."""
    distribution = data_parallel(case)
    batch = examples(distribution.device_mesh.devices.size, 1).global_batch + 1
    _train(case, distribution, Examples(*regression(STEPS * batch), batch))


def _train(case: Case, distribution: object, data: Examples) -> None:
    reference = train_reference(case, data)
    model = train(case, distribution, data)
    inspect_weights(case, distribution, model, reference)


CASES = {"uneven-tail": uneven_tail, "uneven-batch": uneven_batch}
