from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, PciDevices, Unavailable
from kdoctor.model import Action, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._gpus import inactive_links, only_lost, readings
from kdoctor_checks.topology._nvlinks import judge_links, switched

_REMEDY = Remedy(
    summary="Restart the machine. If a link stays down, have it serviced.",
    action=Action.REBOOT,
    commands=("sudo reboot",),
    look=(
        "nvidia-smi nvlink -s",
        "systemctl status nvidia-fabricmanager",
        "sudo dmesg | grep -iE 'nvlink|nvswitch|SXid|Xid'",
    ),
)


@check("topology.nvlink", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def nvlink(gpus: Gpus, pci: PciDevices | Unavailable, *, least: int = 0) -> Iterator[Outcome]:
    """All NVLinks to NVSwitches are active, at the same speed.

    Why: GPUs on an NVSwitch board exchange all gradients over NVLink. With a link down, NCCL hangs, falls back to PCIe,
    or runs at the speed of the slowest GPU. An A100 has 12 links, an H100 18; a checklist may set the number
    (``least``). topology.nvlink-direct checks GPUs that are connected directly.
    Remedy: check the fabric manager and the kernel log, then restart. If a link stays down, have it serviced.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://github.com/Azure/azurehpc-health-checks
    """
    judged, others = readings(gpus, "nvlinks")
    on_switches = [gpu for gpu in judged if switched(gpu, pci)]
    if judged and not on_switches and only_lost(others):
        yield NotApplicable(reason="no GPU is connected to NVSwitches")
        return
    yield from others
    for gpu in on_switches:
        yield judge_links(gpu, on_switches, least, _REMEDY, _explained_by(gpu))


def _explained_by(gpu: Gpu) -> tuple[str, ...]:
    """What takes links down: an NVSwitch after a fatal error, or a fabric that was not started."""
    if not inactive_links(gpu):
        return ()
    starting = gpu.fabric_state in ("not-started", "in-progress")
    fabric = ("topology.fabric",) if starting else ("topology.fabric-manager",) if gpu.fabric_state is None else ()
    return ("topology.nvswitch-errors", *fabric)
