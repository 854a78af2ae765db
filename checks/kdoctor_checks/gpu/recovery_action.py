from kdoctor.facts import Gpu
from kdoctor.model import Remedy, Severity
from kdoctor_checks._gpus import DRIVER_MESSAGES, RESTART, reset
from kdoctor_checks.gpu._flags import gpu_flag
from kdoctor_checks.gpu._memory import bad_memory

_REBOOT = Remedy.reboot("Restart the machine.", "sudo reboot", look=(DRIVER_MESSAGES,))


@gpu_flag(
    "gpu.recovery-action",
    "recovery_action",
    severity=Severity.ERROR,
    bad=lambda gpu: gpu.recovery_action != "none",
    expected="none",
    remedy=lambda alike, _: _REBOOT if any("reboot" in (gpu.recovery_action or "") for gpu in alike) else reset(alike),
    rollback=RESTART,
    alike=lambda gpu: gpu.recovery_action,
    explained_by=bad_memory,
    newer=True,
)
def recovery_action(gpu: Gpu) -> str:
    """The driver requests no recovery action for any GPU.

    Why: newer drivers report what a GPU needs after a fault: a reset, a restart, or draining its peers first. Until
    then, jobs on the GPU fail or lose peer-to-peer access.
    Remedy: perform the requested action.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    return f"the driver requests recovery action {gpu.recovery_action}"
