from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases


@check(
    "smoke.cross-device",
    severity=Severity.ERROR,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.cross-device",
)
def cross_device(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """MirroredStrategy matches one device with ReductionToOneDevice and with NCCL.

    Why: MirroredStrategy reduces gradients with NCCL on GPUs, and with copies elsewhere. If one method hangs or
    computes something else, the links or NCCL are at fault and not the model; until then, the job can use the other.
    NCCL is tested on GPUs only. smoke.hierarchical-copy tests HierarchicalCopyAllReduce, which is never the default
    where NCCL is available.
    Remedy: use the method that works (MirroredStrategy(cross_device_ops=ReductionToOneDevice())), and look for the
    cause with NCCL_DEBUG=INFO.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/distribute/CrossDeviceOps
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, ("reduction-to-one-device", "nccl"), compare.judge)
