"""The devices of a process that uses some of the replicas' devices, isolated from the others."""

from __future__ import annotations

from typing import List, Sequence

import tensorflow as tf

from kdoctor_target.inspect.cuda import gpu_addresses
from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import replica_devices
from kdoctor_target.training.workers import Facts

SURVEY_S = 180.0
"""Seconds to find the devices."""


def list_devices(case: Case) -> None:
    """Note the devices of all replicas and the addresses of the GPUs, without using a GPU.

    To be called in a separate process, which can use the CPU afterwards.
    """
    if case.devices_kind == "cpu":
        case.note(devices=replica_devices(case))
        return
    gpus = tf.config.list_physical_devices("GPU")
    addresses = gpu_addresses()
    asked = len(gpus) if case.replicas is None else min(case.replicas, len(gpus))
    case.note(
        gpus_seen=len(gpus),
        devices=[f"/job:localhost/replica:0/task:0/device:GPU:{index}" for index in range(asked)],
        bus_ids=addresses[:asked] if len(addresses) == len(gpus) else [],
    )
    tf.config.set_visible_devices([], "GPU")


def note_devices(case: Case, found: Facts) -> List[str]:
    """Note the facts of :func:`list_devices` in this case; returns the devices' names."""
    names = list(found["devices"])
    case.note(strategy="MirroredStrategy", replicas=len(names))
    case.note(**{name: found[name] for name in ("devices", "bus_ids", "gpus_seen") if name in found})
    return names


def take_devices(case: Case, places: Sequence[int]) -> List[str]:
    """The devices at those places, and no other GPU; to be called in a separate process.

    GPUs compute with TensorFloat-32, as in a job with default settings.
    """
    if case.devices_kind == "cpu":
        names = replica_devices(case)
        return [names[index] for index in places]
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([gpus[index] for index in places], "GPU")
    return [device.name for device in tf.config.list_logical_devices("GPU")]
