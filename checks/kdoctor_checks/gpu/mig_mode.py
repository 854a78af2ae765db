from kdoctor.facts import Gpu
from kdoctor.model import Remedy, Rollback, Severity
from kdoctor_checks._gpus import smi
from kdoctor_checks.gpu._flags import gpu_flag


@gpu_flag(
    "gpu.mig-mode",
    "mig_mode",
    severity=Severity.ERROR,
    expected="MIG off",
    remedy=lambda divided, gpus: Remedy.configure(
        "Stop all processes on the GPU and turn MIG off. This deletes its instances and resets the GPU.",
        f"sudo {smi(divided, '-mig 0', among=gpus)}",
        look=("nvidia-smi mig -lgi",),
    ),
    rollback=lambda divided, gpus: Rollback.to(
        "turn MIG on again (its instances are not restored)", f"sudo {smi(divided, '-mig 1', among=gpus)}"
    ),
)
def mig_mode(gpu: Gpu) -> str:
    """No GPU is partitioned by MIG (Multi-Instance GPU).

    Why: a CUDA process sees only one MIG instance, and instances have no peer-to-peer access. A strategy for several
    GPUs then trains on one replica, without an error.
    Remedy: turn MIG off for multi-GPU training, or run one process per instance without a strategy.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html
        https://github.com/pytorch/pytorch/issues/130181
        https://github.com/tensorflow/tensorflow/issues/57385
    Failure modes: mig_single_device
    """
    return f"MIG is {'on' if gpu.mig_mode else 'off'}"
