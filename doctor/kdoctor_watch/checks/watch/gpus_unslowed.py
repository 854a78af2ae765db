from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import GpuSampling
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke.gpus_unslowed import judge_slowdowns
from kdoctor_watch.checks.watch._gpus import gpus_of
from kdoctor_watch.facts import Watched


@check("watch.gpus-unslowed", severity=Severity.WARNING)
def gpus_unslowed(watched: Watched, sampling: GpuSampling) -> Iterator[Outcome]:
    """The GPUs of the job are not slowed down by heat or a power brake.

    Why: all replicas wait for the slowest one at each step, so that one hot GPU slows the whole job down. A GPU may
    throttle only after minutes of work, which a short check does not see.
    Remedy: check cooling and power supplies.
    Source: https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
    """
    found = gpus_of(watched, sampling)
    if isinstance(found, tuple):
        yield from (judge_slowdowns(sampling, gpu) for gpu in found)
    else:
        yield found
