"""Whether PCIe errors were counted on the way to the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import PciDevices, PciFunction
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING


@check("topology.pcie-errors", severity=Severity.WARNING, needs_gpus=True)
def pcie_errors(
    pci: PciDevices, *, most_fatal: int = 0, most_nonfatal: int = 10, most_corrected: int = 1000
) -> Iterator[Outcome]:
    """The kernel counted few PCIe errors on the GPUs and on the ports above them.

    Why: a fatal error takes the link down, and the GPU with it; uncorrected ones lose data that the driver must ask
    for again; corrected ones cost time. A few since the machine's start are ordinary; many point at a bad contact.
    Remedy: read the kernel's log for the port; reseat the GPU or replace the riser.
    Sources:
        https://docs.kernel.org/PCI/pcieaer-howto.html
        https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats
    """
    functions: dict[str, PciFunction] = {}
    for device in pci.gpus:
        for function in (*(device.path or ()), device):
            functions[function.bus_id] = function
        if device.path is None:
            yield Unjudged(subject=f"GPU at {device.bus_id}", reason="the ports above it were not read")
    limits = (most_fatal, most_nonfatal, most_corrected)
    for function in functions.values():
        yield _judge(function, limits)


def _judge(function: PciFunction, limits: tuple[int, int, int]) -> Outcome:
    subject = f"PCI {function.bus_id}"
    fatal, nonfatal, corrected = function.aer_fatal, function.aer_nonfatal, function.aer_correctable
    words = f"{fatal} fatal, {nonfatal} non-fatal, {corrected} corrected PCIe errors since the machine's start"
    if any(
        count is not None and count > most for count, most in zip((fatal, nonfatal, corrected), limits, strict=True)
    ):
        return Finding(
            subject=subject,
            observed=words,
            expected="at most {} fatal, {} non-fatal, {} corrected".format(*limits),
            remedy=Remedy(
                summary="Read the kernel's log for the port; reseat the GPU or replace the riser.",
                action=Action.INSPECT_HARDWARE,
                commands=(f"sudo dmesg | grep -E 'AER|{function.bus_id}'",),
            ),
            rollback=LOOKING,
        )
    if fatal is None or nonfatal is None or corrected is None:
        return Unjudged(subject=subject, reason="the kernel does not count its PCIe errors, as far as can be seen")
    return Evidence(subject=subject, observed=words)
