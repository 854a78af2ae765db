"""Reads NVIDIA's PCI devices from sysfs: the kernel's view, which needs no NVIDIA driver.

Source: https://docs.kernel.org/PCI/sysfs-pci.html
"""

from __future__ import annotations

from pathlib import Path

from kdoctor.collect.files import read_int, read_quietly, read_text, reason
from kdoctor.collect.probe import Collected, Context, Probe
from kdoctor.facts import PciDevice, PciDevices, Unavailable

NVIDIA_VENDOR = "0x10de"
_DEVICES = "sys/bus/pci/devices"


def collect(context: Context) -> Collected:
    """Every PCI function of NVIDIA's; unavailable where the bus cannot be read whole."""
    folder = context.root / _DEVICES
    try:
        entries = sorted(folder.iterdir())
        devices = tuple(_read_device(entry) for entry in entries if read_text(entry / "vendor") == NVIDIA_VENDOR)
    except FileNotFoundError:
        return {PciDevices: Unavailable(unavailable="this system shows no PCI bus (/sys/bus/pci/devices is missing)")}
    except OSError as error:
        return {PciDevices: Unavailable(unavailable=f"the PCI devices cannot be read: {reason(error)}")}
    return {PciDevices: PciDevices(devices=devices)}


def _read_device(entry: Path) -> PciDevice:
    device_class = _hexadecimal(entry / "class")
    node = read_int(entry / "numa_node")
    return PciDevice(
        bus_id=entry.name.lower(),
        device_id=_hexadecimal(entry / "device"),
        device_class=device_class[:4] if device_class else None,
        driver=_link_target(entry / "driver"),
        link_speed=_speed(entry / "current_link_speed"),
        link_speed_max=_speed(entry / "max_link_speed"),
        link_width=read_int(entry / "current_link_width"),
        link_width_max=read_int(entry / "max_link_width"),
        numa_node=node if node is not None and node >= 0 else None,
    )


def _hexadecimal(path: Path) -> str | None:
    """``030200`` of ``0x030200``."""
    text = read_quietly(path)
    return text.removeprefix("0x").lower() if text else None


def _speed(path: Path) -> str | None:
    text = read_quietly(path)
    return text if text and not text.startswith("Unknown") else None


def _link_target(path: Path) -> str | None:
    """The last component of where a link points; it need not lead anywhere (containers hide parts of sysfs)."""
    try:
        return path.readlink().name
    except OSError:
        return None


PROBE = Probe(name="pci", provides=(PciDevices,), collect=collect, deadline_s=10)
