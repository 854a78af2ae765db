from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, SmokeRun, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.smoke.definition import HOT_S
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW
from kdoctor_checks.smoke._same_bits import judge_same_bits


@check("smoke.same-bits", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.same-bits")
def same_bits(run: SmokeRun, gpus: Gpus | Unavailable, *, hot_s: float = HOT_S) -> Iterator[Outcome]:
    """Equal devices compute the same bits, each time.

    Why: a GPU can compute wrong numbers without an error. In a job, the sum of the gradients carries them to all
    replicas, so that the weights stay equal and wrong. Large trainings meet this every week or two, and only about 1%
    of it is NaN or infinity. Matrix products, convolutions, attention, reductions and a training are run with the same
    inputs on all devices at once, for hot_s seconds on GPUs. Some faults show only after minutes under load: 600 is
    recommended before a long job.
    Remedy: take the device out of service, and have it examined.
    Sources:
        https://arxiv.org/abs/2502.12340
        https://docs.nvidia.com/cuda/cublas/#results-reproducibility
    """
    yield from judge_same_bits(run, gpus, hot_s)
