"""The sampler while the GPU is idle, and while a framework computes on it."""

import time

import pytest

from helpers import real_gpu
from helpers.real_gpu import Record, occupied, tool
from kdoctor.facts import Gpus, GpuSampling
from kdoctor.smoke.gpu_sampler import Sampler

pytestmark = pytest.mark.gpu

IDLE_S, LOAD_S = 2.5, 6.0
READINGS = (
    "utilization_gpu_percent",
    "memory_used_bytes",
    "power_draw_w",
    "clock_sm_mhz",
    "temperature_c",
    "processes",
)


def test_sampler_sees_a_load(gpus: Gpus, record: Record) -> None:
    sampler = Sampler(real_gpu.context(), deadline_s=120, interval_s=0.25)
    try:
        time.sleep(IDLE_S)
        with occupied("compute") as load:
            sampler.enter("test.load", "products", alone=True)
            sampler.phase("train")
            time.sleep(LOAD_S / 2)
            shown = _shown_by_nvidia_smi()
            time.sleep(LOAD_S / 2)
            sampler.leave()
    finally:
        sampler.end()
    sampling = sampler.facts()
    assert (sampling.state, sampling.error) == ("ready", None)
    assert len(sampling.gpus) == len(gpus.devices)
    _note(sampling, record, str(load["platform"]))
    gpu = sampling.gpus[0]
    assert gpu.before.samples >= 3
    assert gpu.during.samples >= 8
    assert gpu.longest_gap_s is not None
    assert gpu.longest_gap_s < 3
    (case,) = gpu.cases
    assert case.training_samples >= 4
    assert gpu.during.utilization_gpu_percent
    assert gpu.during.utilization_gpu_percent.high > 50
    assert gpu.before.memory_used_bytes
    assert gpu.during.memory_used_bytes
    # The samples before the case include the start of the load.
    assert gpu.during.memory_used_bytes.high > gpu.before.memory_used_bytes.low
    if shown:
        used = gpu.during.memory_used_bytes
        assert used.low - 64 * 1024**2 <= shown["memory.used"] * 1024**2 <= used.high + 64 * 1024**2


def _shown_by_nvidia_smi() -> dict[str, float]:
    """Some readings of the first GPU; empty if nvidia-smi is missing, which does not end the test."""
    names = ("memory.used",)
    try:
        line = tool("nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits").splitlines()[0]
        return {name: float(cell) for name, cell in zip(names, line.split(","), strict=True)}
    except (ValueError, pytest.skip.Exception):
        return {}


def _note(sampling: GpuSampling, record: Record, platform: str) -> None:
    for gpu in sampling.gpus:
        for name in READINGS:
            idle, busy = getattr(gpu.before, name), getattr(gpu.during, name)
            record.row(
                "Sampler",
                GPU=gpu.index,
                load=platform,
                reading=name,
                before=idle and round(idle.low, 2),
                load_low=busy and busy.low,
                load_mean=busy and round(busy.mean, 2),
                load_high=busy and busy.high,
                error=gpu.errors.get(name),
            )
