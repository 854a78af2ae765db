"""Reads ``lspci -vvv`` (with or without ``-nn`` and ``-D``): NVIDIA devices, and the path from each to its root port.

Sources: lspci(8); https://github.com/pciutils/pciutils for the format (``ls-caps.c``, ``ls-ecaps.c``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdoctor.facts import PciBridge, PciDevice, PciDevices
from kdoctor.facts.pci import (
    ACS_COMPLETION_REDIRECT,
    ACS_REQUEST_REDIRECT,
    ACS_SOURCE_VALIDATION,
    ACS_UPSTREAM_FORWARDING,
)
from kdoctor.snapshot.imports.part import Part, Section, sysfs_bus_id

HEAD = re.compile(
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "
    r"(?P<kind>[^:\[]+?)(?: \[(?P<class>[0-9a-f]{4})\])?: (?P<name>.+)"
)
_IDS = re.compile(r"\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]")
_UNNAMED = re.compile(r"\bDevice (?P<device>[0-9a-f]{4})\b")
_BUSES = re.compile(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2})")
_LINK = re.compile(r"LnkCap:.*?Speed (?P<speed>[0-9.]+)GT/s.*?, Width x(?P<width>\d+)[,\s]")
_LINK_NOW = re.compile(r"LnkSta:.*?Speed (?P<speed>[0-9.]+)GT/s[^,]*, Width x(?P<width>\d+)(?:[, (]|$)")
_ACS = re.compile(r"ACSCtl:\s*(?P<bits>.+)")
_EXTENDED = re.compile(r"Capabilities: \[[1-9a-f][0-9a-f]{2} v\d")
_NODE = re.compile(r"NUMA node: (\d+)")
_GROUP = re.compile(r"IOMMU group: (\d+)")
_DRIVER = re.compile(r"Kernel driver in use: (\S+)")
_SUBSYSTEM = re.compile(r"Subsystem: .*\[([0-9a-f]{4}:[0-9a-f]{4})\]")
_CLASSES = {
    "VGA compatible controller": "0300",
    "3D controller": "0302",
    "Bridge": "0680",
    "Audio device": "0403",
    "USB controller": "0c03",
    "PCI bridge": "0604",
}
"""lspci's names of the classes of NVIDIA devices, for output without numbers (``-nn``)."""
_SPEEDS = {"2.5": "2.5", "5": "5.0", "8": "8.0", "16": "16.0", "32": "32.0", "64": "64.0"}
_ACS_BITS = {
    "SrcValid": ACS_SOURCE_VALIDATION,
    "TransBlk": 0x02,
    "ReqRedir": ACS_REQUEST_REDIRECT,
    "CmpltRedir": ACS_COMPLETION_REDIRECT,
    "UpstreamFwd": ACS_UPSTREAM_FORWARDING,
    "EgressCtrl": 0x20,
    "DirectTrans": 0x40,
}
_NVIDIA = "10de"
_NVIDIA_NAME = "NVIDIA Corporation"


@dataclass(frozen=True, kw_only=True)
class _Block:
    """The lines of one function."""

    bus_id: str
    kind: str
    class_number: str | None
    name: str
    text: str
    ended: bool
    """Whether it is certainly complete: lspci prints an empty line after each."""

    @property
    def bus(self) -> str:
        """``domain:bus``."""
        return self.bus_id.rpartition(":")[0]


def parse(section: Section) -> Part:
    """The NVIDIA devices. A last line without line end is ignored."""
    lines = section.lines if section.whole else section.lines[:-1]
    blocks = _blocks(lines)
    bridges = {secondary: block for block in blocks if (secondary := _secondary(block))}
    known = {block.bus_id for block in blocks}
    devices = [_device(block, bridges, known) for block in blocks if _is_nvidia(block)]
    incomplete = blocks and blocks[-1].text.strip() and not blocks[-1].ended and _is_nvidia(blocks[-1])
    return Part(
        kind="lspci -vvv",
        file=section.file,
        groups=(PciDevices(devices=tuple(sorted(devices, key=lambda device: device.bus_id))),),
        notes=(f"{section.file}: the configuration space of the last device may be incomplete",) if incomplete else (),
    )


def _blocks(lines: Sequence[str]) -> list[_Block]:
    heads = [(place, found) for place, line in enumerate(lines) if line[:1].strip() and (found := HEAD.match(line))]
    ends = [*(place for place, _ in heads), len(lines)][1:]
    blocks: list[_Block] = []
    for (start, found), end in zip(heads, ends, strict=True):
        bus_id = sysfs_bus_id(found["address"])
        if bus_id:
            blocks.append(
                _Block(
                    bus_id=bus_id,
                    kind=found["kind"],
                    class_number=found["class"],
                    name=found["name"],
                    text="\n".join(lines[start + 1 : end]),
                    ended=end < len(lines) or not lines[-1].strip(),
                )
            )
    return blocks


def _is_nvidia(block: _Block) -> bool:
    ids = _IDS.search(block.name)
    return ids["vendor"] == _NVIDIA if ids else block.name.startswith(_NVIDIA_NAME)


def _secondary(block: _Block) -> str | None:
    """The bus below a bridge, with its domain."""
    secondary = _found(_BUSES, block)
    return f"{block.bus_id.partition(':')[0]}:{secondary}" if secondary else None


def _device(block: _Block, bridges: Mapping[str, _Block], known: set[str]) -> PciDevice:
    return PciDevice(
        **_function(block),
        device_class=block.class_number or _CLASSES.get(block.kind),
        driver=_found(_DRIVER, block),
        numa_node=_number(_NODE, block),
        subsystem=_found(_SUBSYSTEM, block),
        iommu_group=_number(_GROUP, block),
        path=_path(block, bridges, known),
    )


def _function(block: _Block) -> dict[str, Any]:
    """The fields of ``PciFunction``."""
    ids = _IDS.search(block.name)
    device = ids or _UNNAMED.search(block.name)
    most, now = _LINK.search(block.text), _LINK_NOW.search(block.text)
    return {
        "bus_id": block.bus_id,
        "device_id": device["device"] if device else None,
        "link_speed": _speed(now),
        "link_speed_max": _speed(most),
        "link_width": _width(now),
        "link_width_max": _width(most),
        "acs_control": _acs(block),
    }


def _speed(found: re.Match[str] | None) -> str | None:
    """The speed as sysfs writes it."""
    speed = _SPEEDS.get(found["speed"]) if found else None
    return f"{speed} GT/s PCIe" if speed else None


def _width(found: re.Match[str] | None) -> int | None:
    """Lanes; None for a port without a link."""
    return int(found["width"]) or None if found else None


def _acs(block: _Block) -> int | None:
    """The ACS control register; 0 if the function has none; None if that is not known.

    Only root sees extended capabilities. The register may also be missing if the output is incomplete or was made
    without details (``-vv``).
    """
    found = _ACS.search(block.text)
    if found:
        bits = dict(re.findall(r"(\w+)([+-])(?=\s|$)", found["bits"]))
        if not bits.keys() >= {"ReqRedir", "CmpltRedir", "UpstreamFwd"}:
            return None
        return sum(bit for name, bit in _ACS_BITS.items() if bits.get(name) == "+")
    if "Access Control Services" in block.text or not block.ended or not _EXTENDED.search(block.text):
        return None
    return 0


def _path(block: _Block, bridges: Mapping[str, _Block], known: set[str]) -> tuple[PciBridge, ...] | None:
    """The bridges above a device, the root port first; None if some may be missing, or in output without details."""
    if not (block.text.strip() or block.bus.endswith(":00")):
        return None
    path: list[PciBridge] = []
    top, seen = block, set[str]()
    while (above := bridges.get(top.bus)) is not None and above.bus_id not in seen:
        seen.add(above.bus_id)
        path.append(_bridge(above))
        top = above
    # A listing of selected devices (-d 10de:) lacks the bridges. A full one begins with the first function of a domain.
    domain = block.bus_id.partition(":")[0]
    if f"{domain}:00:00.0" not in known - {block.bus_id} and "Root Port" not in top.text:
        return None
    return tuple(reversed(path))


def _bridge(block: _Block) -> PciBridge:
    ids = _IDS.search(block.name)
    return PciBridge(**_function(block), vendor_id=ids["vendor"] if ids else None)


def _found(pattern: re.Pattern[str], block: _Block) -> str | None:
    found = pattern.search(block.text)
    return found[1] if found else None


def _number(pattern: re.Pattern[str], block: _Block) -> int | None:
    found = _found(pattern, block)
    return int(found) if found else None
