from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Outcome, Remedy, Severity
from kdoctor_checks._gpus import DRIVER_MESSAGES, RESTART, judge, readings, reset
from kdoctor_checks.gpu._memory import bad_memory

_REBOOT = Remedy(
    summary="Restart the machine.", action=Action.REBOOT, commands=("sudo reboot",), look=(DRIVER_MESSAGES,)
)


@check("gpu.recovery-action", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def recovery_action(gpus: Gpus) -> Iterator[Outcome]:
    """The driver requests no recovery action for any GPU.

    Why: newer drivers report what a GPU needs after a fault: a reset, a restart, or draining its peers first. Until
    then, jobs on the GPU fail or lose peer-to-peer access.
    Remedy: perform the requested action.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "recovery_action", newer=True)
    yield from others
    faulty = [gpu for gpu in judged if gpu.recovery_action != "none"]
    for gpu in judged:
        alike = [other for other in faulty if other.recovery_action == gpu.recovery_action]
        yield judge(
            gpu.subject,
            f"the driver requests recovery action {gpu.recovery_action}",
            ok=gpu.recovery_action == "none",
            expected="none",
            remedy=_REBOOT if "reboot" in (gpu.recovery_action or "") else reset(alike),
            rollback=RESTART,
            explained_by=bad_memory(gpu),
        )
