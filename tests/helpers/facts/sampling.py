"""Builders of GPU samples taken during the training."""

from dataclasses import replace
from typing import Any

from helpers.facts.base import MIB
from helpers.facts.gpus import bus_id
from kdoctor.facts import CaseUse, EventTime, GpuSampling, GpuUse, SampledGpu, Spread
from kdoctor.testing import healthy


def spread(low: float, mean: float, high: float) -> Spread:
    """Minimum, mean and maximum."""
    return Spread(low=low, mean=mean, high=high)


def event(bit: int, seconds: float = 2.0, samples: int = 4, in_a_row: int = 4) -> EventTime:
    """A clocks event reason that was active for a while."""
    return EventTime(bit=bit, seconds=seconds, samples=samples, in_a_row=in_a_row)


def case_use(case: str = "mirrored", scenario: str = "smoke.baseline", **changes: Any) -> CaseUse:
    """The samples of a case with a busy GPU."""
    return replace(healthy(GpuSampling).gpus[0].cases[0], scenario=scenario, case=case, **changes)


def idle_use(**changes: Any) -> CaseUse:
    """The samples of a case with an idle GPU."""
    values: dict[str, Any] = {
        "utilization_gpu_percent": spread(0.0, 0.0, 0.0),
        "memory_used_bytes": spread(4.0 * MIB, 4.0 * MIB, 4.0 * MIB),
        "processes": spread(0.0, 0.0, 0.0),
    }
    return case_use(**{**values, **changes})


def gpu_use(**changes: Any) -> GpuUse:
    """Twelve samples of a busy H100."""
    return replace(healthy(GpuSampling).gpus[0].during, **changes)


def sampled_gpu(index: int = 0, **changes: Any) -> SampledGpu:
    """One H100 that was busy in one case and not slowed down."""
    uuid = f"GPU-{index:08x}-1111-2222-3333-444444444444"
    values: dict[str, Any] = {"index": index, "uuid": uuid, "bus_id": bus_id(index), "series": None}
    return replace(healthy(GpuSampling).gpus[0], **{**values, **changes})


def sampling(n: int = 8, *gpus: SampledGpu, **changes: Any) -> GpuSampling:
    """n busy GPUs, or the given ones."""
    listed = gpus or tuple(sampled_gpu(index) for index in range(n))
    return healthy(GpuSampling, **{"gpus": listed, **changes})
