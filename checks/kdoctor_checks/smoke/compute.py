from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, SmokeRun, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._compute import judge_compute
from kdoctor_checks.smoke._judging import TENSORFLOW


@check("smoke.compute", severity=Severity.WARNING, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.compute")
def compute(run: SmokeRun, gpus: Gpus | Unavailable, *, slowest_share: float = 0.85) -> Iterator[Outcome]:
    """Every GPU multiplies matrices and copies memory as fast as the others of its model.

    Why: a job is as fast as its slowest GPU. A GPU that is 15% slower than its equals is hot, limited in power, shared
    or defective, and often nothing else reports it. The reference is the median of the other GPUs of the same model,
    which one outlier does not move; equal GPUs under load differ by a few percent. NVIDIA's published rates are
    evidence only, because programs do not reach them. With one GPU there is no reference.
    Remedy: look for heat, power limits and other processes on the slow GPU.
    Sources:
        https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/
        https://www.nvidia.com/en-us/data-center/h200/
    """
    yield from judge_compute(run, gpus, slowest_share)
