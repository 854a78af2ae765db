"""Reads NVIDIA's PCI devices from sysfs: the kernel's view, which needs no NVIDIA driver.

Sources: https://docs.kernel.org/PCI/sysfs-pci.html,
https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats and .../sysfs-kernel-iommu_groups.
"""

import re
from pathlib import Path
from typing import Any, get_args

from kdoctor.facts import Facts, PciBridge, PciDevice, PciDevices, Unavailable
from kdoctor.facts.pci import IommuType
from kdoctor.probes.files import (
    link_target,
    parse_int,
    parse_mask,
    read_int,
    read_list,
    read_quietly,
    read_speed,
    read_text,
    read_width,
    reason,
)
from kdoctor.probes.probe import Context, Probe

NVIDIA_VENDOR = "0x10de"
_DEVICES = "sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")

_IOMMU_TYPES: dict[str | None, IommuType] = {name: name for name in get_args(IommuType)}

_EXTENDED = 0x100
"""Offset of the extended capabilities. Users other than root can read the first 64 bytes only."""
_ACS_CAPABILITY = 0x000D
_MEMORY, _UNSET = 0x200, 0x20000000
"""Flags of a region in the file ``resource`` (include/linux/ioport.h)."""
_REGIONS = 6
_ALL_ONES = b"\xff" * 4
"""Vendor and device of a function that does not respond."""
_ACS_CONTROL = 6
"""Offset of the control register in the capability."""


def collect(context: Context) -> Facts:
    """Every PCI function of NVIDIA; unavailable if the bus cannot be read completely."""
    return {PciDevices: read_devices(context.root)}


def read_devices(root: Path) -> PciDevices | Unavailable:
    """Every PCI function of NVIDIA.

    Args:
        root: of /sys.
    """
    folder = root / _DEVICES
    try:
        entries = sorted(folder.iterdir())
        ours = [entry for entry in entries if read_text(entry / "vendor") == NVIDIA_VENDOR]
    except FileNotFoundError:
        return Unavailable(unavailable="/sys/bus/pci/devices does not exist: the PCI bus is not visible")
    except OSError as error:
        return Unavailable(unavailable=f"the PCI devices cannot be read: {reason(error)}")
    bridges: dict[Path, PciBridge] = {}
    return PciDevices(devices=tuple(_read_device(root, entry, bridges) for entry in ours))


def _read_device(root: Path, entry: Path, bridges: dict[Path, PciBridge]) -> PciDevice:
    device_class = _hexadecimal(entry / "class")
    node = read_int(entry / "numa_node")
    group = link_target(entry / "iommu_group")
    return PciDevice(
        **_read_function(entry),
        device_class=device_class[:4] if device_class else None,
        driver=link_target(entry / "driver"),
        regions_without_address=_regions_without_address(entry / "resource"),
        numa_node=node if node is not None and node >= 0 else None,
        subsystem=_subsystem(entry),
        local_cpus=_local_cpus(entry),
        iommu_group=parse_int(group or ""),
        iommu_type=_IOMMU_TYPES.get(read_quietly(root / "sys/kernel/iommu_groups" / group / "type")) if group else None,
        path=_read_path(entry, bridges),
    )


def _read_function(entry: Path) -> dict[str, Any]:
    return {
        "bus_id": entry.name.lower(),
        "device_id": _hexadecimal(entry / "device"),
        "link_speed": read_speed(entry / "current_link_speed"),
        "link_speed_max": read_speed(entry / "max_link_speed"),
        "link_width": read_width(entry / "current_link_width"),
        "link_width_max": read_width(entry / "max_link_width"),
        **_from_config(entry / "config"),
        "aer_counted": (entry / "aer_dev_fatal").exists(),
        "aer_correctable": _aer_total(entry / "aer_dev_correctable"),
        "aer_nonfatal": _aer_total(entry / "aer_dev_nonfatal"),
        "aer_fatal": _aer_total(entry / "aer_dev_fatal"),
    }


def _read_path(entry: Path, bridges: dict[Path, PciBridge]) -> tuple[PciBridge, ...] | None:
    """The bridges above a device, from its path in /sys/devices; each bridge is read once."""
    try:
        place = entry.resolve(strict=True)
    except OSError:
        return None
    path: list[PciBridge] = []
    for folder in reversed(place.parents):
        if _ADDRESS.fullmatch(folder.name):
            if folder not in bridges:
                bridges[folder] = PciBridge(**_read_function(folder), vendor_id=_hexadecimal(folder / "vendor"))
            path.append(bridges[folder])
    return tuple(path) if any(_ROOT.fullmatch(folder.name) for folder in place.parents) else None


def _regions_without_address(path: Path) -> int | None:
    flags = [int(word, 16) for word in re.findall(r" 0x([0-9a-f]{1,16})$", read_quietly(path) or "", re.MULTILINE)]
    return sum(flag & _MEMORY > 0 < flag & _UNSET for flag in flags[:_REGIONS]) if flags else None


def _subsystem(entry: Path) -> str | None:
    vendor, device = _hexadecimal(entry / "subsystem_vendor"), _hexadecimal(entry / "subsystem_device")
    return f"{vendor}:{device}" if vendor and device else None


def _local_cpus(entry: Path) -> tuple[int, ...] | None:
    listed = read_list(entry / "local_cpulist")
    if listed is not None:
        return listed or None
    mask = read_quietly(entry / "local_cpus")
    return (parse_mask(mask) or None) if mask else None


def _hexadecimal(path: Path) -> str | None:
    """``030200`` for ``0x030200``."""
    text = read_quietly(path)
    return text.removeprefix("0x").lower() if text else None


def _from_config(path: Path) -> dict[str, Any]:
    """What the configuration space reports."""
    try:
        space = path.read_bytes()
    except OSError:
        return {}
    # The kernel keeps the vendor, so that a device which has fallen off the bus stays listed.
    responds = None if len(space) < len(_ALL_ONES) else space[: len(_ALL_ONES)] != _ALL_ONES
    return {"acs_control": _acs_control(space), "responds": responds}


def _acs_control(space: bytes) -> int | None:
    """The ACS control register of a configuration space; 0 without ACS; None if that part cannot be read."""
    if len(space) <= _EXTENDED:
        return None
    offset, seen = _EXTENDED, set[int]()
    while offset >= _EXTENDED and offset + 8 <= len(space) and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(space[offset : offset + 4], "little")
        if header & 0xFFFF == _ACS_CAPABILITY:
            control = offset + _ACS_CONTROL
            return int.from_bytes(space[control : control + 2], "little")
        if header == 0xFFFFFFFF:  # noqa: PLR2004 - all ones: the device does not respond
            return None
        offset = header >> 20
    return 0


def _aer_total(path: Path) -> int | None:
    """The total of an ``aer_stats`` file, from its line ``TOTAL_ERR_...``."""
    for line in (read_quietly(path) or "").splitlines():
        name, _, number = line.partition(" ")
        if name.startswith("TOTAL_ERR") and number.strip().isdecimal():
            return parse_int(number)
    return None


PROBE = Probe(name="pci", provides=(PciDevices,), collect=collect, deadline_s=10)
