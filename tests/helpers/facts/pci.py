"""Builders of the group ``pci``: GPUs and the ports above them."""

from dataclasses import replace
from typing import Any

from helpers.facts.gpus import bus_id, near
from kdoctor.facts import PciBridge, PciDevice, PciDevices
from kdoctor.testing import healthy


def bridge(bus_id: str, **changes: Any) -> PciBridge:
    """A port above a GPU: full width and speed, no ACS, no errors."""
    above, *_ = healthy(PciDevices).devices[0].path or ()
    return replace(above, bus_id=bus_id, **changes)


def way(index: int, **changes: Any) -> tuple[PciBridge, ...]:
    """The ports above GPU ``index``: a root port, and a switch. Changes apply to the upstream port of the switch."""
    bus = (index + 1) * 16
    root, upper, lower = (f"0000:{bus - above:02x}:00.0" for above in (4, 3, 2))
    return bridge(root), bridge(upper, **changes), bridge(lower)


def pci_gpu(index: int = 0, **changes: Any) -> PciDevice:
    """The PCI function of GPU ``index``."""
    place = {"bus_id": bus_id(index), "numa_node": index // 4, "local_cpus": near(index), "path": way(index)}
    return replace(healthy(PciDevices).devices[0], **{**place, **changes})


def pci(n: int = 8, *devices: PciDevice) -> PciDevices:
    """The PCI functions of n GPUs (or the given ones), and an NVSwitch, which is not a GPU."""
    *_, switch = healthy(PciDevices).devices
    return PciDevices(devices=(*(devices or tuple(pci_gpu(index) for index in range(n))), switch))
