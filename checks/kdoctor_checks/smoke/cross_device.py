from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained


@trained("smoke.cross-device")
def cross_device(compare: Comparison, case: SmokeCase) -> Outcome:
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
    return compare.judge(case)
