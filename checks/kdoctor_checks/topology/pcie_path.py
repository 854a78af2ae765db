"""Whether the links above the GPUs' own are at full width and speed."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import PciDevices
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING, inspect
from kdoctor_checks.topology._links import Link, links_above


@check("topology.pcie-path", severity=Severity.WARNING, needs_gpus=True)
def pcie_path(pci: PciDevices, *, least_share: float = 1.0) -> Iterator[Outcome]:
    """PCIe links above the GPUs' switches run at full width and speed.

    Why: the GPUs below a PCIe switch share the link above it. If it is narrow or slow, all of them are slow, although
    the link of each GPU looks fine. topology.pcie-width and topology.pcie-generation check the GPU's own link. Ports
    without a GPU below are ignored.
    Remedy: restart once. Then check risers and cables, and the firmware settings of the slot.
    Sources:
        https://docs.kernel.org/PCI/sysfs-pci.html
        https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
    """
    below: dict[str, tuple[Link, list[str]]] = {}
    for device in pci.gpus:
        if device.path is None:
            yield Unjudged(subject=f"GPU at {device.bus_id}", reason="the path to its root port was not read")
            continue
        for link in links_above(device):
            below.setdefault(link.subject, (link, []))[1].append(device.bus_id)
    for link, gpus in below.values():
        yield _judge(link, gpus, least_share)
    if not below and pci.gpus and all(device.path is not None for device in pci.gpus):
        yield NotApplicable(reason="no visible PCIe switch above the GPUs")


def _judge(link: Link, gpus: list[str], least_share: float) -> Outcome:
    width, widest, generation, fastest = link.width, link.width_max, link.generation, link.generation_max
    if width is None or widest is None or generation is None or fastest is None:
        return Unjudged(subject=link.subject, reason=f"the link was not read: {link.describe().replace('None', '?')}")
    if width >= least_share * widest and generation >= fastest:
        return Evidence(subject=link.subject, observed=link.describe())
    return Finding(
        subject=link.subject,
        observed=f"{link.describe()}, above the {'GPU' if len(gpus) == 1 else 'GPUs'} at {', '.join(gpus)}",
        expected=f"x{widest}, generation {fastest}",
        remedy=inspect(
            "Restart once. Then check risers and cables, and the firmware settings of the slot.",
            f"sudo lspci -vv -s {link.lower.bus_id} | grep -E 'LnkCap:|LnkSta:'",
            "sudo lspci -tv",
        ),
        rollback=LOOKING,
    )
