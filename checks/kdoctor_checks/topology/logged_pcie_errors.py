import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import RESEAT, subjects
from kdoctor_checks._kernel_log import LOG_UNREAD, by_device, fatal_pcie, nothing_logged, nvidia_addresses, summary

_OTHER = re.compile(r"(?!(?:pcieport|nvidia|nouveau|vfio-pci|snd_hda_intel|xhci_hcd) )[\w-]+ \S+: (?:AER|PCIe Bus Err)")
"""How the kernel begins an error of a device whose driver is that of no port and of no part of a GPU."""


@check("topology.logged-pcie-errors", severity=Severity.WARNING, needs_gpus=True, unread=LOG_UNREAD)
def logged_pcie_errors(
    log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable, *, most_corrected: int = 1
) -> Iterator[Outcome]:
    """The kernel logged no PCIe errors of a GPU or a port above it.

    Why: the kernel reports errors of PCIe links (AER). An uncorrected error loses data or takes the GPU down. Corrected
    errors in number cost time, and show a bad contact, riser or slot. The counters of topology.pcie-errors may be
    hidden or reset; the log keeps the errors. Errors of other devices are ignored where they, or their drivers, show.
    Remedy: read the kernel log for the port, then reseat the GPU or replace the riser.
    Sources:
        https://docs.kernel.org/PCI/pcieaer-howto.html
        https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html
    """
    names = subjects(gpus, pci)
    ours = _addresses(pci, names)
    ended = fatal_pcie(log, nvidia_addresses(gpus, pci))
    found = False
    for bus_id, events in by_device(
        item for item in log.events if item.kind in ("pcie-error", "pcie-corrected")
    ).items():
        fatal = [event for event in events if event.kind == "pcie-error"]
        times = sum(event.times for event in events if event.kind == "pcie-corrected")
        is_other = bus_id not in ours if ours and bus_id else any(_OTHER.match(event.text) for event in events)
        if is_other or not (fatal or times > most_corrected):
            continue
        found = True
        words = ["uncorrected PCIe errors"] if fatal else []
        words += [f"{times} corrected PCIe errors"] if times > most_corrected else []
        yield Finding(
            subject=names.get(bus_id or "", f"PCI {bus_id}" if bus_id else "a device without address in the log"),
            observed=summary(events),
            brief=" and ".join("corrected PCIe errors" if word[0].isdigit() else word for word in words),
            expected=f"no uncorrected and at most {most_corrected} corrected PCIe errors",
            remedy=Remedy.inspect(RESEAT, "sudo dmesg | grep AER", "sudo lspci -vvv -t"),
            explained_by=("gpu.kernel-log",) if any(event in ended for event in fatal) else (),
        )
    if not found:
        yield nothing_logged(log, gpus, pci, "PCIe errors of a GPU", sign=None)


def _addresses(pci: PciDevices | Unavailable, names: dict[str, str]) -> frozenset[str]:
    """The GPUs and the ports above them; empty if the ports are not known."""
    if not isinstance(pci, PciDevices) or any(device.path is None for device in pci.gpus):
        return frozenset()
    functions = {function.bus_id for device in pci.gpus for function in (*(device.path or ()), device)}
    return frozenset(functions | set(names))
