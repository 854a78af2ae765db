"""Batches that are not divisible by the number of devices of ``keras.distribution.DataParallel``."""

from __future__ import annotations

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import data_parallel, inspect_weights, train, train_reference
from kdoctor_target.training.regression import PER_REPLICA, Batches, make_batches, regression

STEPS = 5


def uneven_tail(case: Case) -> None:
    """Only the final batch is not divisible; every device still gets an example of it."""
    distribution = data_parallel(case)
    devices = distribution.device_mesh.devices.size
    _train(case, distribution, make_batches(devices, STEPS, tail=2 * devices - 1))


def uneven_batch(case: Case) -> None:
    """No batch is divisible."""
    distribution = data_parallel(case)
    batch = PER_REPLICA * distribution.device_mesh.devices.size + 1
    _train(case, distribution, Batches(*regression(STEPS * batch), batch))


def _train(case: Case, distribution: object, data: Batches) -> None:
    reference = train_reference(case, data)
    model = train(case, distribution, data)
    inspect_weights(case, distribution, model, reference)


CASES = {"uneven-tail": uneven_tail, "uneven-batch": uneven_batch}
