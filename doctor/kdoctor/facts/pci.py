"""NVIDIA's PCI devices, as the kernel lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kdoctor.facts.base import FactGroup

DISPLAY_CLASSES = ("0300", "0302")
"""PCI classes of GPUs: VGA controller and 3D controller. NVSwitch is 0680, audio 0403."""


@dataclass(frozen=True, kw_only=True)
class PciDevice:
    """One PCI function of vendor 10de."""

    bus_id: str
    """``domain:bus:device.function`` in lower case, as in sysfs."""
    device_id: str | None
    """Four hexadecimal digits."""
    device_class: str | None
    """Class and subclass, four hexadecimal digits."""
    driver: str | None
    """The kernel driver bound to it; None where none is bound."""
    link_speed: str | None = None
    """Current speed, in sysfs' words: ``16.0 GT/s PCIe``."""
    link_speed_max: str | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    numa_node: int | None = None
    """NUMA node; None where the platform does not say (sysfs: -1)."""

    @property
    def is_gpu(self) -> bool:
        """Whether its class is that of a GPU."""
        return self.device_class in DISPLAY_CLASSES


@dataclass(frozen=True, kw_only=True)
class PciDevices(FactGroup):
    """Every PCI function of NVIDIA's vendor id."""

    group: ClassVar[str] = "pci"

    devices: tuple[PciDevice, ...]
    """In order of bus id."""

    @property
    def gpus(self) -> tuple[PciDevice, ...]:
        """Those that are GPUs."""
        return tuple(device for device in self.devices if device.is_gpu)
