from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, SmokeRun, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._compute import judge_compute


@check("smoke.compute-jax", severity=Severity.WARNING, explained_by=NO_GPU, scenario="smoke.compute-jax")
def compute_jax(run: SmokeRun, gpus: Gpus | Unavailable, *, slowest_share: float = 0.85) -> Iterator[Outcome]:
    """Every GPU multiplies matrices and copies memory with JAX as fast as the others of its model.

    Why: as for smoke.compute, for targets without TensorFlow. A GPU that is slower than its equals delays all of them.
    The reference is the median of the other GPUs of the same model. Published rates are evidence only. Skipped if JAX
    is not installed, or not for GPUs.
    Remedy: look for heat, power limits and other processes on the slow GPU.
    Sources:
        https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/
        https://www.nvidia.com/en-us/data-center/h200/
    """
    yield from judge_compute(run, gpus, slowest_share)
