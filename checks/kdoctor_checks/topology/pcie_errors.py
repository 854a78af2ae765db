from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpus, PciDevices, PciFunction, Unavailable
from kdoctor.model import Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import RESEAT, RESPONDING, absent, judge, lost_addresses

_LOSES_DATA = frozenset(
    {"FatalErr", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "RxOF", "MalfTLP", "ECRC", "UncorrIntErr", "BlockedTLP"}
)
"""Uncorrected errors by lspci's names. Unsupported requests and the like occur while devices are searched for."""


@check("topology.pcie-errors", severity=Severity.WARNING, needs_gpus=True)
def pcie_errors(
    pci: PciDevices,
    gpus: Gpus | Unavailable,
    *,
    most_fatal: int = 0,
    most_nonfatal: int = 10,
    most_corrected: int = 1000,
) -> Iterator[Outcome]:
    """The GPUs and the ports above them have few PCIe errors.

    Why: a fatal error takes the link and the GPU down, uncorrected errors lose data that the driver must request again,
    and corrected errors cost time. A few errors since boot are normal; many indicate a bad contact. lspci shows only
    which errors were recorded, not how many: there, uncorrected ones count and corrected ones do not.
    Remedy: read the kernel log for the port, then reseat the GPU or replace the riser.
    Sources:
        https://docs.kernel.org/PCI/pcieaer-howto.html
        https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats
    """
    functions: dict[str, tuple[PciFunction, set[str]]] = {}
    gone = lost_addresses(gpus, pci) if isinstance(gpus, Gpus) else frozenset[str]()
    for device in pci.gpus:
        for function in (*(device.path or ()), device):
            functions.setdefault(function.bus_id, (function, set()))[1].add(device.bus_id)
        if device.path is None and not absent(gpus, pci):
            yield Unjudged(subject=f"GPU at {device.bus_id}", reason="the ports above it were not read")
    limits = (most_fatal, most_nonfatal, most_corrected)
    excuse = absent(gpus, pci)
    for function, below in functions.values():
        outcome = _judge(function, limits, explained_by=(RESPONDING,) if below <= gone else ())
        if not excuse or isinstance(outcome, Finding):
            yield outcome
    if excuse:
        yield excuse


def _judge(function: PciFunction, limits: tuple[int, int, int], explained_by: tuple[str, ...]) -> Outcome:
    subject = f"PCI {function.bus_id}"
    counts = (function.aer_fatal, function.aer_nonfatal, function.aer_correctable)
    kinds = ("fatal", "non-fatal", "corrected")
    many = [kind for kind, count, most in zip(kinds, counts, limits, strict=True) if count is not None and count > most]
    exceeded = bool(many)
    if None in counts and not exceeded:
        if function.aer_status is not None:
            return _judge_status(function, function.aer_status, explained_by)
        if function.aer_counted is False:
            return NotApplicable(reason=f"the kernel counts no errors of {subject} (no AER, as in virtual machines)")
        return Unjudged(subject=subject, reason="its PCIe error counters were not read")
    fatal, nonfatal, corrected = ("?" if count is None else count for count in counts)
    return judge(
        subject,
        f"{fatal} fatal, {nonfatal} non-fatal, {corrected} corrected PCIe errors since boot",
        ok=not exceeded,
        expected="at most {} fatal, {} non-fatal, {} corrected".format(*limits),
        remedy=Remedy.inspect(RESEAT, "sudo dmesg | grep AER"),
        brief=f"too many {' and '.join(many)} PCIe errors",
        explained_by=explained_by,
    )


def _judge_status(function: PciFunction, status: Sequence[str], explained_by: tuple[str, ...]) -> Outcome:
    """By the errors that the function has recorded, where the kernel's counters are missing."""
    found = [name for name in status if name in _LOSES_DATA]
    return judge(
        f"PCI {function.bus_id}",
        f"uncorrected PCIe errors recorded: {', '.join(found) or 'none'}",
        ok=not found,
        expected="no uncorrected PCIe error",
        remedy=Remedy.inspect(RESEAT, "sudo dmesg | grep AER", f"sudo lspci -vvv -s {quoted(function.bus_id)}"),
        brief="uncorrected PCIe errors recorded",
        explained_by=explained_by,
    )
