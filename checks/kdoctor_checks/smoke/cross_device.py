"""Whether each way to add up gradients over the devices adds up."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check(
    "smoke.cross-device",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.cross-device",
)
def cross_device(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """MirroredStrategy gives the weights of one device by copies to one of them, and by NCCL.

    Why: MirroredStrategy adds up gradients by NCCL on GPUs, and by copies elsewhere. If one way hangs or computes
    something else and another does not, the links or NCCL are at fault and not the model; the other way lets the job
    run meanwhile. NCCL is tried on GPUs alone. HierarchicalCopyAllReduce, which no strategy takes by itself where NCCL
    is, has a check of its own.
    Remedy: give the strategy the communication that works
    (MirroredStrategy(cross_device_ops=ReductionToOneDevice())), and look for the cause with NCCL_DEBUG=INFO.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/distribute/CrossDeviceOps
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    yield from each_case(
        run,
        ("reduction-to-one-device", "nccl"),
        lambda case: equals_one_device(run, case, target, packages, tolerance=tolerance),
    )
