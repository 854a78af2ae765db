from kdoctor.facts import Gpu
from kdoctor.model import Remedy, Rollback, Severity
from kdoctor_checks._gpus import smi
from kdoctor_checks.gpu._flags import gpu_flag


@gpu_flag(
    "gpu.mig-mode-pending",
    "mig_mode",
    "mig_mode_pending",
    severity=Severity.WARNING,
    bad=lambda gpu: gpu.mig_mode != gpu.mig_mode_pending,
    expected="no change pending",
    remedy=lambda alike, gpus: Remedy.configure(
        "Cancel the change, or reset the GPU now to apply it.",
        f"sudo {smi(alike, f'-mig {int(any(gpu.mig_mode for gpu in alike))}', among=gpus)}",
    ),
    rollback=lambda alike, gpus: Rollback.to(
        "restore the recorded pending mode",
        f"sudo {smi(alike, f'-mig {int(any(gpu.mig_mode_pending for gpu in alike))}', among=gpus)}",
    ),
    alike=lambda gpu: gpu.mig_mode,
    requires=("gpu.mig-mode",),
)
def mig_mode_pending(gpu: Gpu) -> str:
    """No GPU has a pending change of its MIG mode.

    Why: after the next reset or restart the GPU differs from the one checked here: partitioned instead of whole, for
    example. A restarted job then finds one small replica instead of a GPU.
    Remedy: reset the GPU now, or cancel the change.
    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html
    """
    now, then = ("on" if mode else "off" for mode in (gpu.mig_mode, gpu.mig_mode_pending))
    return f"MIG is {now}" + (f", but {then} after the next reset" if now != then else "")
