"""Some of the replicas' devices in a process of their own, which spoils no other and is disturbed by none."""

from __future__ import annotations

from typing import Callable, List, Sequence

import tensorflow as tf

from kdoctor_target.inspect.cuda import gpu_addresses
from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import replica_devices
from kdoctor_target.training.workers import Cluster, Facts, Task

SURVEY_S = 180.0
"""Seconds to find the devices."""


def in_a_process(case: Case, task: Task, function: Callable[[Case], None], patience_s: float) -> Facts:
    """What became of a function in a process of its own, which is ended with its stacks when its time is over.

    Args:
        case: the case; its own process must not have touched a device.
        task: names the process and its files.
        function: takes the process's own case, and says there what it finds.
        patience_s: seconds.
    """
    cluster = Cluster(case, own_files=True)
    try:
        cluster.start(task, lambda own, _: function(own), with_config=False)
        (facts,) = cluster.wait(patience_s)
        return facts
    finally:
        cluster.end()


def list_devices(own: Case) -> None:
    """Note the devices of all replicas, and where the GPUs are. GPUs are counted, and none is taken.

    To be called in a process of its own, which can use the CPU afterwards.
    """
    if own.devices_kind == "cpu":
        own.note(devices=replica_devices(own))
        return
    gpus = tf.config.list_physical_devices("GPU")
    addresses = gpu_addresses()
    asked = len(gpus) if own.replicas is None else min(own.replicas, len(gpus))
    own.note(
        gpus_seen=len(gpus),
        devices=["/job:localhost/replica:0/task:0/device:GPU:{}".format(index) for index in range(asked)],
        bus_ids=addresses[:asked] if len(addresses) == len(gpus) else [],
    )
    tf.config.set_visible_devices([], "GPU")


def note_devices(case: Case, found: Facts) -> List[str]:
    """Say as the case's own what :func:`list_devices` found; returns the devices' names."""
    names = list(found["devices"])
    case.note(strategy="MirroredStrategy", replicas=len(names))
    case.note(**{name: found[name] for name in ("devices", "bus_ids", "gpus_seen") if name in found})
    return names


def take_devices(own: Case, places: Sequence[int]) -> List[str]:
    """The devices at those places, and no other GPU; to be called in a process of its own.

    GPUs compute as in a job that says nothing about it: with TensorFloat-32.
    """
    if own.devices_kind == "cpu":
        names = replica_devices(own)
        return [names[index] for index in places]
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([gpus[index] for index in places], "GPU")
    return [device.name for device in tf.config.list_logical_devices("GPU")]
