"""Whether the driver asks for a GPU to be reset or replaced."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED, readings


@check("gpu.recovery-action", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def recovery_action(gpus: Gpus) -> Iterator[Outcome]:
    """The driver asks for no GPU to be recovered.

    Why: newer drivers say themselves what a GPU needs after a fault: a reset, a restart, or that its
    peers be drained first. Until then jobs on it fail, or lose their peer-to-peer traffic.
    Remedy: do what the driver asks for.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "recovery_action", newer=True)
    yield from others
    for gpu in judged:
        if gpu.recovery_action == "none":
            yield Evidence(subject=gpu.subject, observed="recovery action none")
        else:
            yield Finding(
                subject=gpu.subject,
                observed=f"recovery action {gpu.recovery_action}",
                expected="recovery action none",
                remedy=_remedy(gpu),
                rollback=NOTHING_CHANGED,
            )


def _remedy(gpu: Gpu) -> Remedy:
    if "reboot" in (gpu.recovery_action or ""):
        return Remedy(summary="Restart the machine.", action=Action.REBOOT, commands=("sudo reboot",))
    return Remedy(
        summary="End all that uses the GPU (and its peers, where it asks to drain them) and reset it; a second fault "
        "needs a technician.",
        action=Action.REBOOT,
        commands=(
            "sudo dmesg | grep -iE 'NVRM|Xid'",
            f"sudo nvidia-smi --gpu-reset -i {gpu.bus_id or gpu.index}",
        ),
    )
