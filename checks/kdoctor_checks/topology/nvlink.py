from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, PciDevices, Unavailable
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._gpus import DRIVER, inactive_links, only_lost, readings
from kdoctor_checks.topology._mesh import fewer_links, unlike_equals
from kdoctor_checks.topology._nvlinks import judge_links, may_be_linked, stands_alone, switched

_REMEDY = Remedy.reboot(
    "Restart the machine. If a link stays down, have it serviced.",
    "sudo reboot",
    look=(
        "nvidia-smi nvlink -s",
        "systemctl status nvidia-fabricmanager",
        "sudo dmesg | grep -iE 'nvlink|nvswitch|SXid|Xid'",
    ),
)


@check("topology.nvlink", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def nvlink(gpus: Gpus, pci: PciDevices | Unavailable, *, least: int = 0) -> Iterator[Outcome]:
    """All NVLinks to NVSwitches are active, at the same speed.

    Why: GPUs on an NVSwitch board exchange all gradients over NVLink. With a link down, NCCL hangs, falls back to PCIe,
    or runs at the speed of the slowest GPU. The fabric state, the links of the other GPUs and NVSwitches on the bus
    show which GPUs belong to such a board. A GPU with fewer links than its equals is at fault. A checklist may set the
    number (``least``). topology.nvlink-direct checks GPUs that are connected directly.
    Remedy: check the fabric manager and the kernel log, then restart. If a link stays down, have it serviced.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://github.com/Azure/azurehpc-health-checks
    """
    linking = {index for pair in gpus.pairs if pair.nvlinks for index in (pair.first, pair.second)}
    judged, others = readings(gpus, "nvlinks", owed=lambda gpu: gpu.index in linking)
    whole = {gpu.index for gpu in judged}
    unlike = {index: odd for index, odd in unlike_equals(gpus).items() if index not in whole}
    alone = [gpu for gpu in judged if not may_be_linked(gpu) and stands_alone(gpu, gpus, pci)]
    linked = {gpu.name for gpu in judged if gpu.nvlinks}
    on_switches = [
        gpu for gpu in judged if gpu not in alone and (switched(gpu, pci) or (not gpu.nvlinks and gpu.name in linked))
    ]
    if judged and not on_switches and not unlike and only_lost(others):
        reason = (
            "the only GPU, whose NVLinks may lead nowhere" if alone else "no GPU is known to be connected to NVSwitches"
        )
        yield NotApplicable(reason=reason)
        return
    found = {gpu.subject: fewer_links(gpu, unlike[gpu.index], _REMEDY) for gpu in gpus.devices if gpu.index in unlike}
    yield from (item for item in others if isinstance(item, NotApplicable) or item.subject not in found)
    yield from found.values()
    for gpu in on_switches:
        yield judge_links(gpu, on_switches, least, _REMEDY, _explained_by(gpu), pairs=gpus.pairs)


def _explained_by(gpu: Gpu) -> tuple[str, ...]:
    """What takes links down: MIG, an NVSwitch after a fatal error, or a fabric that was not started."""
    if not inactive_links(gpu):
        return ()
    starting = gpu.fabric_state in ("not-started", "in-progress")
    fabric = ("topology.fabric",) if starting else ("topology.fabric-manager",) if gpu.fabric_state is None else ()
    mig = ("gpu.mig-mode",) if gpu.mig_mode else ()
    return (*mig, "topology.nvswitch-errors", *fabric)
