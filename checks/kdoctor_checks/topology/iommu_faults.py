import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import subjects
from kdoctor_checks._kernel_log import LOG_UNREAD, by_device, log_subject, nothing_logged, nvidia_addresses
from kdoctor_checks.topology.iommu import NO_PASS_THROUGH, PASS_THROUGH

_BUILTIN = re.compile(r"0000:00:")
_OF_OTHERS = re.compile(r"(?!nvidia|nouveau|vfio-pci|pci |AMD-Vi|arm-smmu)[\w-]+ [\da-f:]+\.[0-7]: ")
"""The kernel names the driver of the device."""


@check("topology.iommu-faults", severity=Severity.ERROR, needs_gpus=True, unread=LOG_UNREAD)
def iommu_faults(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The kernel logged no GPU transfer blocked by the IOMMU.

    Why: "DMAR: ... PTE Write access is not set" (or AMD-Vi's IO_PAGE_FAULT) for a GPU means that data it sent did not
    arrive. Multi-GPU jobs have hung at the first all-reduce or trained to NaN. Faults of other devices are ignored; a
    device on bus 00 of a machine with VT-d is part of the processor or chipset, such as integrated graphics.
    Remedy: boot the kernel with iommu=pt, or turn VT-d or the IOMMU off in the firmware.
    Sources:
        https://github.com/tensorflow/tensorflow/issues/32654
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    Failure modes: iommu_acs
    """
    ours = nvidia_addresses(gpus, pci)
    faults = [event for event in log.events if event.kind == "iommu-fault"]
    ours |= {event.bus_id for event in faults if event.bus_id and event.text.startswith("nvidia ")}
    others = {
        event.bus_id
        for event in faults
        if _OF_OTHERS.match(event.text) or (event.text.startswith("DMAR: ") and _BUILTIN.match(event.bus_id or ""))
    }
    devices = by_device(faults)
    mine = {bus_id: events for bus_id, events in devices.items() if bus_id in ours}
    for bus_id, events in mine.items():
        yield Finding(
            subject=log_subject(bus_id, subjects(gpus, pci)),
            brief="the IOMMU blocked its transfers",
            observed=f"the IOMMU blocked {counted(len(events), 'transfer')}; last line: {events[-1].text!r}",
            expected="no blocked transfers",
            remedy=PASS_THROUGH,
            rollback=NO_PASS_THROUGH,
        )
    foreign = sorted(bus_id or "a device without address" for bus_id in devices if bus_id not in ours | others)
    if foreign and (not isinstance(pci, PciDevices) or None in devices):
        yield Unjudged(
            subject="kernel log", reason=f"the IOMMU blocked transfers of {', '.join(foreign)}, which may be a GPU"
        )
    elif not mine:
        yield nothing_logged(log, gpus, pci, "blocked transfer of a GPU", sign=None)
