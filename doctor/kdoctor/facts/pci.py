"""NVIDIA's PCI devices and the path from each to its root port, as the kernel lists them.

Sources: https://docs.kernel.org/PCI/sysfs-pci.html, https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci,
PCI Express Base Specification for the Access Control Services (extended capability 0x000D).
"""

import re
from typing import Annotated, ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import ABOVE_ZERO, AtMost, Identity, Within
from kdoctor.records import record

ACS_SOURCE_VALIDATION = 0x01
ACS_REQUEST_REDIRECT = 0x04
ACS_COMPLETION_REDIRECT = 0x08
ACS_UPSTREAM_FORWARDING = 0x10
"""Bits of the ACS control register; the last three redirect peer traffic to the root."""

_REDIRECTS = ACS_REQUEST_REDIRECT | ACS_COMPLETION_REDIRECT | ACS_UPSTREAM_FORWARDING

IommuType = Literal["identity", "DMA", "DMA-FQ", "unmanaged", "blocked"]
"""The translation of a device's addresses: one to one; translated (strictly, or with a flush queue); by user space;
none, because all access is blocked."""
TRANSLATED: tuple[IommuType, ...] = ("DMA", "DMA-FQ", "blocked")
"""Types with which peers do not reach a device's memory at its addresses."""

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}


def link_generation(speed: str | None) -> int | None:
    """The PCIe generation of a link speed in sysfs (``16.0 GT/s PCIe`` is 4); None for any other text."""
    found = re.match(r"(\d+(?:\.\d+)?)(?:\s|GT/s|$)", speed or "")
    return _GENERATIONS.get(float(found[1])) if found else None


_LANE_GBS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}


def link_gbs(generation: int | None, lanes: int | None) -> float | None:
    """The bandwidth of a PCIe link in one direction, GB/s; None if generation or width is unknown.

    The line code is subtracted (PCI Express Base Specification: 2.5 to 64 GT/s; 8b/10b, 128b/130b, and 242/256 in
    flits), packet headers are not.
    """
    lane = _LANE_GBS.get(generation or 0)
    return lane * lanes if lane and lanes else None


DISPLAY_CLASSES = ("0300", "0302")
"""PCI classes of GPUs: VGA controller and 3D controller. NVSwitch is 0680, audio 0403."""

NVSWITCH_CLASS = "0680"


@record
class PciFunction:
    """The facts of every PCI function."""

    bus_id: Annotated[str, Identity()]
    """``domain:bus:device.function`` in lower case, as in sysfs."""
    device_id: str | None
    """Four hexadecimal digits."""
    link_speed: str | None = None
    """Current speed as in sysfs: ``16.0 GT/s PCIe``."""
    link_speed_max: str | None = None
    link_width: Annotated[int | None, Within(ABOVE_ZERO, 64), AtMost("link_width_max")] = None
    link_width_max: Annotated[int | None, Within(ABOVE_ZERO, 64)] = None
    acs_control: Annotated[int | None, Within(0, 0xFFFF)] = None
    """The ACS control register (see ``ACS_...``); 0 if the function has no ACS; None if that part of its configuration
    space could not be read (only root can)."""
    aer_counted: bool | None = None
    """Whether the kernel counts its PCIe errors: not without the capability AER, which most virtual machines lack."""
    aer_correctable: int | None = None
    """Corrected PCIe errors since boot (``aer_dev_correctable``)."""
    aer_nonfatal: int | None = None
    aer_fatal: int | None = None
    aer_status: tuple[str, ...] | None = None
    """Uncorrected errors that the function has recorded, by lspci's names (``MalfTLP``); None if not read."""
    responds: bool | None = None
    """Whether its configuration space can be read; False if it reads all ones, as lspci shows by ``rev ff``."""

    @property
    def acs_redirects(self) -> bool | None:
        """Whether ACS redirects peer traffic that passes here to the root; None if unknown."""
        return None if self.acs_control is None else bool(self.acs_control & _REDIRECTS)


@record
class PciBridge(PciFunction):
    """A root port, or a switch port, on the path to a device."""

    vendor_id: str | None = None
    """Four hexadecimal digits."""


@record
class PciDevice(PciFunction):
    """One PCI function of vendor 10de."""

    device_class: str | None
    """Class and subclass, four hexadecimal digits."""
    driver: str | None
    """The kernel driver bound to it, if any."""
    regions_without_address: int | None = None
    """Memory regions (BARs) that firmware and kernel gave no addresses; None if they were not read."""
    numa_node: int | None = None
    """NUMA node; None if the platform does not report it (sysfs: -1)."""
    subsystem: str | None = None
    """Vendor and device of the board: ``10de:16c1``."""
    local_cpus: tuple[int, ...] | None = None
    """Logical processors near it."""
    iommu_group: int | None = None
    """None if it is in no group (no IOMMU) or sysfs does not show it; see ``Kernel.iommu_groups`` for which."""
    iommu_type: IommuType | None = None
    path: tuple[PciBridge, ...] | None = None
    """The bridges above it, the root port first; empty for a device of the root complex itself (as in virtual
    machines), None if unknown."""

    @property
    def is_gpu(self) -> bool:
        """Whether its class is that of a GPU. A function whose class was not read may be one."""
        if self.device_class is None:
            return self.driver in (None, "nvidia", "nouveau")
        return self.device_class in DISPLAY_CLASSES

    @property
    def is_nvswitch(self) -> bool:
        """Whether its class is that of an NVSwitch."""
        return self.device_class == NVSWITCH_CLASS

    @property
    def subject(self) -> str:
        """The device's name in reports."""
        return f"PCI {self.bus_id}"


@record
class PciDevices(FactGroup):
    """Every PCI function of NVIDIA's vendor id."""

    group: ClassVar[str] = "pci"

    devices: tuple[PciDevice, ...]
    """In order of bus id."""

    @property
    def gpus(self) -> tuple[PciDevice, ...]:
        """The GPUs among them."""
        return tuple(device for device in self.devices if device.is_gpu)

    @property
    def switches(self) -> tuple[PciDevice, ...]:
        """The NVSwitches among them."""
        return tuple(device for device in self.devices if device.is_nvswitch)

    def find(self, bus_id: str | None) -> PciDevice | None:
        """The function at that address (sysfs form), or None."""
        return next((device for device in self.devices if device.bus_id == bus_id), None)
