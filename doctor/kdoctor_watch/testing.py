"""A healthy job, for tests of checks."""

from functools import cache

from kdoctor.facts import Gpus
from kdoctor.testing import healthy_node
from kdoctor_watch.facts import (
    Watched,
    WatchedBits,
    WatchedInput,
    WatchedMemory,
    WatchedReplicas,
    WatchedSteps,
    WatchedValues,
)


@cache
def healthy_watched() -> Watched:
    """A job of 1000 steps on the eight GPUs."""
    gpus = healthy_node()[Gpus]
    devices = gpus.devices if isinstance(gpus, Gpus) else ()
    return Watched(
        seconds=1000,
        steps=WatchedSteps(
            steps=1000, timed=995, baseline_s=0.1, recent_s=0.1, slowest_s=0.11, slowest_at=400, stall_after_s=120
        ),
        values=WatchedValues(logs=("loss",), steps=1000, variables=20),
        replicas=WatchedReplicas(replicas=len(devices), variables=20, checks=10, last_step=999, every=100),
        input=WatchedInput(looks=100, empty=0),
        bits=WatchedBits(
            every_s=600,
            rounds=3,
            programs=("product float32", "attention"),
            devices=len(devices),
            clean_step=999,
            seconds=0.1,
            slowest_s=0.05,
        ),
        devices=tuple(f"/device:GPU:{index}" for index in range(len(devices))),
        bus_ids=tuple(gpu.bus_id for gpu in devices if gpu.bus_id),
        memory=(WatchedMemory(name="process", every_s=60, lows=(2**30,) * 16),),
    )
