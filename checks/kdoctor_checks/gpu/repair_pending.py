from kdoctor.facts import Gpu
from kdoctor.model import Severity
from kdoctor_checks._gpus import RESTART, reset
from kdoctor_checks.gpu._flags import gpu_flag
from kdoctor_checks.gpu._memory import replacement_pending


def _found(gpu: Gpu) -> str:
    parts = (("memory channel", gpu.channel_repair_pending), ("TPC", gpu.tpc_repair_pending))
    pending = " and ".join(part for part, is_pending in parts if is_pending)
    return f"{pending} repair pending until a reset" if pending else "no repair pending"


@gpu_flag(
    "gpu.repair-pending",
    "channel_repair_pending",
    "tpc_repair_pending",
    severity=Severity.WARNING,
    bad=lambda gpu: gpu.channel_repair_pending or gpu.tpc_repair_pending,
    expected="no repair pending",
    remedy=lambda pending, _: reset(pending),
    rollback=RESTART,
    brief=_found,
    explained_by=replacement_pending,
    newer=True,
)
def repair_pending(gpu: Gpu) -> str:
    """No GPU waits for a reset to repair a memory channel or a processing cluster (TPC).

    Why: newer GPUs replace a faulty memory channel, or a faulty cluster of multiprocessors, by a spare one at the next
    reset. Until then the faulty part stays in use, and a job may hit it.
    Remedy: reset the GPU before a long job.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    return _found(gpu)
