"""Whether the GPUs are registered with the NVLink fabric."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import NOTHING_CHANGED, readings

_VIRTUAL = ("passthrough", "vgpu")


@check("topology.fabric", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def fabric(gpus: Gpus) -> Iterator[Outcome]:
    """Every GPU of an NVSwitch machine is registered with the NVLink fabric.

    Why: before the fabric manager has registered a GPU, CUDA does not start (error 802, "system not yet
    initialized"); one whose registration failed has no peer-to-peer traffic over NVLink. Hopper GPUs and later tell
    their state; for older ones see topology.fabric-manager. In a virtual machine the manager may be the host's.
    Remedy: start the fabric manager, in the driver's own version, and restart what was running.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "fabric_state", newer=True)
    yield from others
    subjects = [gpu for gpu in judged if gpu.fabric_state != "not-supported"]
    for gpu in subjects:
        yield _judge(gpu)
    if judged and not subjects and not others:
        yield NotApplicable(reason="the GPUs are on no NVLink fabric")


def _judge(gpu: Gpu) -> Outcome:
    words = f"fabric state {gpu.fabric_state}"
    if gpu.fabric_state != "completed":
        if gpu.virtualization_mode in _VIRTUAL:
            reason = f"{words}, in a virtual machine ({gpu.virtualization_mode}), whose host may not use the fabric"
            return Unjudged(subject=gpu.subject, reason=reason)
        return _finding(gpu, words)
    if gpu.fabric_status is None:
        error = gpu.errors.get("fabric_status", "no reason given")
        return Unjudged(subject=gpu.subject, reason=f"{words}, but its status was not read ({error})")
    if gpu.fabric_status != "success":
        return _finding(gpu, f"{words}, status {gpu.fabric_status}")
    return Evidence(subject=gpu.subject, observed=f"{words}, status {gpu.fabric_status}")


def _finding(gpu: Gpu, observed: str) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=observed,
        expected="fabric state completed, status success",
        remedy=Remedy(
            summary="Start the fabric manager, in the driver's own version; read its log where it does not start.",
            action=Action.CONFIGURE,
            commands=(
                "nv-fabricmanager -v",
                "sudo systemctl enable --now nvidia-fabricmanager",
                "sudo journalctl -u nvidia-fabricmanager",
            ),
        ),
        rollback=NOTHING_CHANGED,
    )
