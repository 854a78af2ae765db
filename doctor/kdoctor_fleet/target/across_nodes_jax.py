"""Keras on JAX over the workers that TF_CONFIG names: ``keras.distribution.initialize`` and ``DataParallel``.

Each worker runs this program on its node. The coordinator listens on the port after that of the first worker.

Measures: ``workers``, their number; ``worker``, the index of this one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kdoctor_fleet.target.across import Place, read_place, require_port
from kdoctor_target.runner.case import Case
from kdoctor_target.training.jax import describe, fit, make_model, require, train_reference
from kdoctor_target.training.regression import Batches, Reference, make_batches
from kdoctor_target.training.workers import LINGER_S


def data_parallel(case: Case) -> None:
    """``Model.fit`` on all devices of all workers, compared with one device."""
    case.phase("strategy")
    place = read_place(case)
    case.measure({"workers": len(place.addresses), "worker": place.number})
    require(case)
    import keras

    host, _, port = place.addresses[0].rpartition(":")
    coordinator = f"{host}:{int(port) + 1}"
    if place.number == 0:
        require_port(case, coordinator)
    keras.distribution.initialize(coordinator, len(place.addresses), place.number)
    distribution = keras.distribution.DataParallel(devices=keras.distribution.list_devices(case.devices_kind))
    distribution.auto_shard_dataset = False  # each worker feeds its share
    describe(case, distribution)
    whole = make_batches(distribution.device_mesh.devices.size)
    reference = train_reference(case, whole)
    case.phase("build")
    with distribution.scope():
        model = make_model()
        fit(case, model, _share(whole, place))
    case.note(**whole.facts())
    _inspect(case, model, reference)
    time.sleep(LINGER_S)


def _share(whole: Batches, place: Place) -> Batches:
    """What this worker feeds: its rows of each global batch."""
    rows = np.arange(len(whole.inputs)).reshape(-1, len(place.addresses), whole.global_batch // len(place.addresses))
    mine = rows[:, place.number].ravel()
    return Batches(whole.inputs[mine], whole.targets[mine], rows.shape[-1])


def _inspect(case: Case, model: Any, reference: Reference) -> None:
    """Note the variables on the devices of this worker, and how much they differ from one device's."""
    case.phase("inspect")
    copies = [[np.asarray(shard.data) for shard in one.value.addressable_shards] for one in model.weights]
    case.note(
        weights={
            "variables": len(copies),
            "mirrored": sum(
                all(copy.shape == one.value.shape for copy in own) and one.value.is_fully_replicated
                for one, own in zip(model.weights, copies)
            ),
            "nonfinite": [one.path for one, own in zip(model.weights, copies) if not np.isfinite(own).all()],
            "replicas_agree": all(np.array_equal(copy, own[0]) for own in copies for copy in own),
        },
        weight_deviation=float(
            np.max([np.max(np.abs(copy - two)) for own, two in zip(copies, reference.weights) for copy in own])
        ),
    )
