"""Builders of what ``kdoctor.Watch`` saw."""

from dataclasses import replace
from typing import Any

from helpers.facts.gpus import bus_id
from kdoctor.facts import GpuSeries
from kdoctor_watch.facts import Watched
from kdoctor_watch.testing import healthy_watched

BUSY = GpuSeries(every_s=2.0, utilization_gpu_percent=(0.0, *[95.0] * 40))
"""The samples of a GPU that works from the beginning on."""


def watched(n: int = 2, **changes: Any) -> Watched:
    """A healthy training of 1000 steps on n GPUs."""
    job = healthy_watched()
    of_gpus: dict[str, Any] = {
        "replicas": replace(job.replicas, replicas=n),
        "devices": tuple(f"/device:GPU:{index}" for index in range(n)),
        "bus_ids": tuple(bus_id(index) for index in range(n)),
    }
    return replace(job, **{**of_gpus, **changes})
