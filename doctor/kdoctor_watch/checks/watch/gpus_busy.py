from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import GpuSampling, SampledGpu
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_watch.checks.watch._gpus import gpus_of
from kdoctor_watch.facts import Watched

_REMEDY = Remedy.change_code(
    "Check that each replica gets batches, and that the input pipeline keeps up.", look=("nvidia-smi dmon -s um",)
)
_FEW = 5


@check("watch.gpus-busy", severity=Severity.WARNING)
def gpus_busy(watched: Watched, sampling: GpuSampling, *, least_percent: float = 10.0) -> Iterator[Outcome]:
    """The GPUs of the job are busy.

    Why: a GPU that is idle in a job waits for data or for another replica, or has no replica at all. NVML is asked
    every two seconds by another process. The mean of the newest quarter of the samples counts.
    Remedy: look at the input pipeline, and compare the strategy's devices with nvidia-smi.
    Source: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
    """
    found = gpus_of(watched, sampling)
    if not isinstance(found, tuple):
        yield found
        return
    for gpu in found:
        yield _judge(gpu, least_percent)


def _judge(gpu: SampledGpu, least_percent: float) -> Outcome:
    points = gpu.series.utilization_gpu_percent if gpu.series else ()
    known = [point for point in points if point is not None]
    if len(known) < _FEW or gpu.series is None:
        return Unjudged(subject=gpu.subject, reason=f"its utilization was read {len(known)} times; {_FEW} are needed")
    newest = known[-max(_FEW, len(known) // 4) :]
    mean = sum(newest) / len(newest)
    observed = f"mean utilization {mean:.0f} % in the newest {len(newest) * gpu.series.every_s:.0f} s"
    if mean >= least_percent:
        return Evidence(subject=gpu.subject, observed=observed, brief=f"{mean:.0f} % busy")
    return Finding(
        subject=gpu.subject,
        observed=observed,
        brief="idle during the training",
        expected=f"at least {least_percent:g} %",
        remedy=_REMEDY,
    )
