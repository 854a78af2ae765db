from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, SmokeRun, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.smoke.definition import HOT_S
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._same_bits import judge_same_bits


@check("smoke.same-bits-jax", severity=Severity.ERROR, explained_by=NO_GPU, scenario="smoke.same-bits-jax")
def same_bits_jax(run: SmokeRun, gpus: Gpus | Unavailable, *, hot_s: float = HOT_S) -> Iterator[Outcome]:
    """Equal devices compute the same bits with JAX, each time.

    Why: as for smoke.same-bits, for targets without TensorFlow. Products of float8 are included where the GPU has them.
    Skipped if JAX is not installed, or not for GPUs.
    Remedy: take the device out of service, and have it examined.
    Sources:
        https://arxiv.org/abs/2502.12340
        https://docs.nvidia.com/cuda/cublas/#results-reproducibility
    """
    yield from judge_same_bits(run, gpus, hot_s)
