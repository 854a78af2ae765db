"""The GPUs of a watched training."""

from kdoctor.facts import GpuSampling, SampledGpu
from kdoctor.model import NotApplicable, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._gpu_usage import ALL
from kdoctor_watch.facts import Watched


def gpus_of(watched: Watched, sampling: GpuSampling) -> tuple[SampledGpu, ...] | NotApplicable | Unjudged:
    """The samples of the job's GPUs, or why there are none."""
    expected = sum("GPU:" in device for device in watched.devices)
    if not expected:
        return NotApplicable(reason="the job trains on the CPU")
    if sampling.state != "ready":
        return Unjudged(subject=ALL, reason=f"NVML: {sampling.error or sampling.state}")
    if len(watched.bus_ids) < expected:
        return Unjudged(subject=ALL, reason="CUDA did not report the addresses of all GPUs of the job")
    found = tuple(gpu for gpu in sampling.gpus if gpu.bus_id in watched.bus_ids)
    if len(found) < len(watched.bus_ids):
        return Unjudged(
            subject=ALL,
            reason=f"{counted(len(found), 'GPU was', 'GPUs were')} sampled of {len(watched.bus_ids)} of the job",
        )
    return found
