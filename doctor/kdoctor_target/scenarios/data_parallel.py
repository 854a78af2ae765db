"""``keras.distribution.DataParallel`` on JAX: every device holds every variable, and a share of each batch."""

from __future__ import annotations

from typing import Any

from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import data_parallel, examples, inspect_weights, train, train_reference

STEPS = 6


def fit(case: Case) -> None:
    """``Model.fit`` on full batches."""
    _compare(case)


def batch_normalization(case: Case) -> None:
    """With BatchNormalization: JAX takes the moments over the whole batch, wherever its parts are."""
    _compare(case, normalised=True)


def smaller_tail(case: Case) -> None:
    """The final batch is smaller than the others, and divides."""
    _compare(case, one_each=True)


def _compare(case: Case, *, one_each: bool = False, **model: Any) -> None:
    distribution = data_parallel(case)
    devices = distribution.device_mesh.devices.size
    data = examples(devices, STEPS, tail=devices if one_each else 0)
    reference = train_reference(case, data, **model)
    trained = train(case, distribution, data, **model)
    inspect_weights(case, distribution, trained, reference)


CASES = {"fit": fit, "batch-normalization": batch_normalization, "smaller-tail": smaller_tail}
