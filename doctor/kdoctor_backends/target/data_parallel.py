"""``keras.distribution.DataParallel`` on JAX: every device holds every variable and a shard of each batch."""

from __future__ import annotations

from typing import Any

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import data_parallel, inspect_weights, train, train_reference
from kdoctor_target.training.regression import make_batches


def fit(case: Case) -> None:
    """``Model.fit`` with full batches."""
    _compare(case)


def batch_normalization(case: Case) -> None:
    """With BatchNormalization: JAX takes the moments of the whole batch, however it is sharded."""
    _compare(case, normalised=True)


def smaller_tail(case: Case) -> None:
    """The final batch is smaller, but still divisible by the number of devices."""
    _compare(case, one_each=True)


def _compare(case: Case, *, one_each: bool = False, **options: Any) -> None:
    distribution = data_parallel(case)
    devices = distribution.device_mesh.devices.size
    data = make_batches(devices, tail=devices if one_each else 0)
    reference = train_reference(case, data, **options)
    model = train(case, distribution, data, **options)
    inspect_weights(case, distribution, model, reference)
