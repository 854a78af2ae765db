"""Builders of the group ``pci``: GPUs and the ports above them."""

from typing import Any

from helpers.facts.gpus import bus_id, near
from kdoctor.facts import PciBridge, PciDevice, PciDevices


def bridge(bus_id: str, **changes: Any) -> PciBridge:
    """A port above a GPU: full width and speed, no ACS, no errors."""
    values: dict[str, Any] = {
        "bus_id": bus_id,
        "device_id": "c030",
        "vendor_id": "1000",
        "link_speed": "32.0 GT/s PCIe",
        "link_speed_max": "32.0 GT/s PCIe",
        "link_width": 16,
        "link_width_max": 16,
        "acs_control": 0,
        "aer_correctable": 0,
        "aer_nonfatal": 0,
        "aer_fatal": 0,
    }
    return PciBridge(**{**values, **changes})


def way(index: int, **changes: Any) -> tuple[PciBridge, ...]:
    """The ports above GPU ``index``: a root port, and a switch. Changes apply to the upstream port of the switch."""
    bus = (index + 1) * 16
    root, upper, lower = (f"0000:{bus - above:02x}:00.0" for above in (4, 3, 2))
    return bridge(root), bridge(upper, **changes), bridge(lower)


def pci_gpu(index: int = 0, **changes: Any) -> PciDevice:
    """The PCI function of GPU ``index``."""
    values: dict[str, Any] = {
        "bus_id": bus_id(index),
        "device_id": "2330",
        "device_class": "0302",
        "driver": "nvidia",
        "link_speed": "32.0 GT/s PCIe",
        "link_speed_max": "32.0 GT/s PCIe",
        "link_width": 16,
        "link_width_max": 16,
        "numa_node": index // 4,
        "local_cpus": near(index),
        "path": way(index),
        "acs_control": 0,
        "aer_correctable": 0,
        "aer_nonfatal": 0,
        "aer_fatal": 0,
    }
    return PciDevice(**{**values, **changes})


def pci(n: int = 8, *devices: PciDevice) -> PciDevices:
    """The PCI functions of n GPUs (or the given ones), and an NVSwitch, which is not a GPU."""
    switch = PciDevice(bus_id="0000:f0:00.0", device_id="22a3", device_class="0680", driver="nvidia-nvswitch")
    return PciDevices(devices=(*(devices or tuple(pci_gpu(index) for index in range(n))), switch))
