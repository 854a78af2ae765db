"""Small trees of /proc, /sys and /dev below a folder, for the probes that read them."""

import sys
from collections.abc import Mapping
from pathlib import Path

from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children


def context(root: Path, environ: Mapping[str, str] | None = None) -> Context:
    """A context with /sys, /proc and /dev below ``root``."""
    return Context(
        python=sys.executable, chosen_by="kdoctor's own", environ=environ or {}, children=Children(), root=root
    )


def write(root: Path, **files: str) -> None:
    """Write files. Use ``__`` for a slash in a name."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def add_pci_device(root: Path, bus_id: str, *, driver: str | None = "nvidia", **files: str) -> Path:
    """A PCI device in sysfs, by default an H100."""
    folder = root / "sys/bus/pci/devices" / bus_id
    folder.mkdir(parents=True)
    values = {
        "vendor": "0x10de",
        "device": "0x2330",
        "class": "0x030200",
        "current_link_speed": "32.0 GT/s PCIe",
        "max_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_width": "16",
        "numa_node": "0",
    }
    for name, text in (values | files).items():
        (folder / name).write_text(f"{text}\n")
    if driver:
        (folder / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
    return folder
