"""Builders of GPU samples taken during the training."""

from typing import Any

from helpers.facts.base import MIB
from helpers.facts.gpus import bus_id
from kdoctor.facts import CaseUse, EventTime, GpuSampling, GpuUse, SampledGpu, Spread


def spread(low: float, mean: float, high: float) -> Spread:
    """Minimum, mean and maximum."""
    return Spread(low=low, mean=mean, high=high)


def event(bit: int, seconds: float = 2.0, samples: int = 4, in_a_row: int = 4) -> EventTime:
    """A clocks event reason that was active for a while."""
    return EventTime(bit=bit, seconds=seconds, samples=samples, in_a_row=in_a_row)


def case_use(case: str = "mirrored", scenario: str = "smoke.baseline", **changes: Any) -> CaseUse:
    """The samples of a case with a busy GPU."""
    values: dict[str, Any] = {
        "scenario": scenario,
        "case": case,
        "samples": 12,
        "training_samples": 6,
        "utilization_gpu_percent": spread(0.0, 40.0, 90.0),
        "memory_used_bytes": spread(4.0 * MIB, 400.0 * MIB, 600.0 * MIB),
        "processes": spread(0.0, 0.8, 1.0),
        "events": (event(0x1),),
    }
    return CaseUse(**{**values, **changes})


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
    values: dict[str, Any] = {
        "samples": 12,
        "utilization_gpu_percent": spread(0.0, 40.0, 90.0),
        "utilization_memory_percent": spread(0.0, 5.0, 9.0),
        "memory_used_bytes": spread(4.0 * MIB, 400.0 * MIB, 600.0 * MIB),
        "temperature_c": spread(34.0, 38.0, 45.0),
        "power_draw_w": spread(71.0, 150.0, 310.0),
        "clock_sm_mhz": spread(345.0, 1400.0, 1980.0),
        "processes": spread(0.0, 0.8, 1.0),
        "events": (event(0x1),),
    }
    return GpuUse(**{**values, **changes})


def sampled_gpu(index: int = 0, **changes: Any) -> SampledGpu:
    """One H100 that was busy in one case and not slowed down."""
    before: dict[str, Any] = {"utilization_gpu_percent": spread(0.0, 0.0, 0.0), "processes": spread(0.0, 0.0, 0.0)}
    values: dict[str, Any] = {
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": f"GPU-{index:08x}-1111-2222-3333-444444444444",
        "bus_id": bus_id(index),
        "enforced_power_limit_w": 700.0,
        "clock_sm_max_mhz": 1980,
        "before": GpuUse(samples=6, memory_used_bytes=spread(4.0 * MIB, 4.0 * MIB, 4.0 * MIB), **before),
        "during": gpu_use(),
        "cases": (case_use(),),
        "longest_gap_s": 0.51,
        "errors": {"temperature_slowdown_c": "NVML_ERROR_NOT_SUPPORTED"},
    }
    return SampledGpu(**{**values, **changes})


def sampling(n: int = 8, *gpus: SampledGpu, **changes: Any) -> GpuSampling:
    """n busy GPUs, or the given ones."""
    values: dict[str, Any] = {
        "state": "ready",
        "interval_s": 0.5,
        "seconds": 9.0,
        "gpus": gpus or tuple(sampled_gpu(index) for index in range(n)),
    }
    return GpuSampling(**{**values, **changes})
