"""Reads ``lspci -vvv`` (also ``-v``, ``-n``, ``-nn``, ``-mm``, ``-D``, ``-xxx``): NVIDIA devices, and their root ports.

Sources: lspci(8); https://github.com/pciutils/pciutils for the format (``ls-caps.c``, ``ls-ecaps.c``).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kdoctor.facts import PciBridge, PciDevice, PciDevices
from kdoctor.facts.pci import (
    ACS_COMPLETION_REDIRECT,
    ACS_REQUEST_REDIRECT,
    ACS_SOURCE_VALIDATION,
    ACS_UPSTREAM_FORWARDING,
)
from kdoctor.records import record
from kdoctor.text.lists import counted
from kdoctor_recordings.formats.part import Part, Section, sysfs_bus_id

HEAD = re.compile(
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "
    r"(?P<kind>[^:\[]+?)(?: \[(?P<class>[0-9a-f]{4})\])?: (?P<name>.+)"
)
_QUOTED = re.compile(
    r"^(?P<Slot>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "
    r'"(?P<Class>[^"]*)" "(?P<Vendor>[^"]*)" "(?P<Device>[^"]*)"(?:.*? -r(?P<Rev>\w\w))?.*',
    re.MULTILINE,
)
"""A line of ``lspci -mm``."""
_ENTRIES = re.compile(r"^Slot:.*(?:\n(?!Slot:)\w+:.*)*", re.MULTILINE)
_ENTRY = re.compile(r"^(Slot|Class|Vendor|Device|Rev|Driver|NUMANode|IOMMUGroup):[ \t]+(.*)", re.MULTILINE)
"""A device of ``lspci -vmm``, and a line of it."""
_SAME = {"Driver": "\tKernel driver in use: ", "NUMANode": "\tNUMA node: ", "IOMMUGroup": "\tIOMMU group: "}
"""Entries of ``-vmm`` to the lines of ``-v`` with the same meaning."""
_CLASS_NUMBER = re.compile(r"[0-9a-f]{4}")
_IDS = re.compile(r"(?:\[|^)(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})(?:\]|(?= \(|$))")
_UNNAMED = re.compile(r"\bDevice (?P<device>[0-9a-f]{4})\b")
_BUSES = re.compile(r"Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2})")
_LINK = re.compile(r"LnkCap:.*?Speed (?P<speed>[0-9.]+|unknown)(?:GT/s)?.*?, Width x(?P<width>\d+)[,\s]")
_LINK_NOW = re.compile(r"LnkSta:.*?Speed (?P<speed>[0-9.]+|unknown)(?:GT/s)?[^,]*, Width x(?P<width>\d+)(?:[,\s(]|$)")
_UNNAMED_DEVICE = re.compile(r"\s*(?:Lnk(?:Cap|Sta):.*\bWidth x\d|Control: I/O[+-]|Status: Cap[+-])")
_UNCORRECTED = re.compile(r"UESta:\s*((?:\w+[+-](?:\s+|$))+)")
_FATAL = re.compile(r"DevSta:.*\bFatalErr\+")
_ALL_ONES = re.compile(r"\(rev ff\)|!!! Unknown header type 7f|^00: ff ff ff ff", re.MULTILINE)
"""What lspci prints where the configuration space reads all ones, because the device does not respond."""
_ACS = re.compile(r"ACSCtl:\s*(?P<bits>.+)")
_EXTENDED = re.compile(r"Capabilities: \[[1-9a-f][0-9a-f]{2} v\d")
_REGION = re.compile(r"\bMemory at (?P<address>\S+)")
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
_SPEEDS = {"2.5": "2.5", "5": "5.0", "8": "8.0", "16": "16.0", "32": "32.0", "64": "64.0", "128": "128.0"}
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


@record
class _Block:
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
    if not any(map(begins, section.lines)):
        return section.part(notes=(f"{section.file}: {_unnamed(section.lines)}",))
    blocks = _blocks(_usual(section.lines if section.whole else section.lines[:-1]))
    bridges = {f"{block.bus_id.partition(':')[0]}:{bus}": block for block in blocks if (bus := _found(_BUSES, block))}
    known = {block.bus_id for block in blocks}
    devices = [_device(block, bridges, known) for block in blocks if _is_nvidia(block)]
    last = blocks[-1] if blocks else None
    incomplete = last and ":" in last.text and not last.ended and _is_nvidia(last) and _responds(last) is not False
    group = PciDevices(devices=tuple(sorted(devices, key=lambda device: device.bus_id)))
    notes = ["the configuration space of the last device may be incomplete"] if incomplete else []
    if group.gpus and all(device.link_width_max is None for device in group.gpus):
        notes.append(f"{counted(len(group.gpus), 'NVIDIA GPU')} on the bus, whose links are not in it (lspci -vvv)")
    return section.part(groups=(group,), notes=tuple(f"{section.file}: {note}" for note in notes))


def begins(line: str) -> bool:
    """Whether the line is the first one of a device."""
    return bool(HEAD.match(line) or _QUOTED.match(line) or re.fullmatch(r"Slot:\s+[0-9a-f:.]{7,16}", line))


def begins_part(line: str) -> bool:
    """Whether the line is about a device whose first line is not in the output."""
    return bool(_UNNAMED_DEVICE.match(line))


def _unnamed(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    most, now = _LINK.search(f"{text}\n"), _LINK_NOW.search(text)
    found = [f"x{one['width']} at {one['speed']} GT/s" for one in (now, most) if one]
    link = f": {' of '.join(found)}" if found else ""
    idle = " (an idle GPU lowers the speed)" if len(found) > 1 else ""
    return f"it does not say which device this is{link}{idle}; add the line with its address (lspci -vvv)"


def _usual(lines: Sequence[str]) -> list[str]:
    """The lines with machine-readable forms (``-mm``, ``-vmm``) as ``lspci -v`` writes them."""
    text = _ENTRIES.sub(lambda block: _named(dict(_ENTRY.findall(block[0]))), "\n".join(lines))
    return _QUOTED.sub(lambda found: _named(found.groupdict("")), text).split("\n")


def _named(entries: Mapping[str, str]) -> str:
    """A device with its numbers, if its vendor and itself are numbers (``-n``), and what else is known of it."""
    vendor, device = entries.get("Vendor", ""), entries.get("Device", "")
    between = ":" if _CLASS_NUMBER.fullmatch(vendor) and _CLASS_NUMBER.fullmatch(device) else " "
    head = f"{entries['Slot']} {entries.get('Class', '')}: {vendor}{between}{device} (rev {entries.get('Rev') or '00'})"
    return "\n".join((head, *(f"{text}{entries[key]}" for key, text in _SAME.items() if entries.get(key))))


def _blocks(lines: Sequence[str]) -> list[_Block]:
    heads = [(place, found) for place, line in enumerate(lines) if (found := HEAD.match(line))]
    ends = [*(place for place, _ in heads), len(lines)][1:]
    return [
        _Block(
            bus_id=sysfs_bus_id(found["address"]) or "",
            kind=found["kind"],
            class_number=found["class"] or (found["kind"] if _CLASS_NUMBER.fullmatch(found["kind"]) else None),
            name=found["name"],
            text="\n".join(lines[start + 1 : end]),
            ended=end < len(lines) or not lines[-1].strip(),
        )
        for (start, found), end in zip(heads, ends, strict=True)
    ]


def _is_nvidia(block: _Block) -> bool:
    ids = _IDS.search(block.name)
    return ids["vendor"] == _NVIDIA if ids else block.name.startswith(_NVIDIA_NAME)


def _device(block: _Block, bridges: Mapping[str, _Block], known: set[str]) -> PciDevice:
    return PciDevice(
        **_function(block),
        device_class=block.class_number or _CLASSES.get(block.kind),
        driver=_found(_DRIVER, block),
        regions_without_address=_regions_without_address(block),
        numa_node=_number(_NODE, block),
        subsystem=_found(_SUBSYSTEM, block),
        iommu_group=_number(_GROUP, block),
        path=_path(block, bridges, known),
    )


def _function(block: _Block) -> dict[str, Any]:
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
        "aer_status": _aer(block),
        "responds": _responds(block),
    }


def _aer(block: _Block) -> tuple[str, ...] | None:
    """The uncorrected errors that the function has recorded. Only root sees them, except for a fatal one."""
    found = _UNCORRECTED.search(block.text)
    fatal = ("FatalErr",) if _FATAL.search(block.text) else ()
    if not found:
        return fatal or None
    return (*fatal, *(word[:-1] for word in found[1].split() if word.endswith("+")))


def _responds(block: _Block) -> bool | None:
    """Whether the configuration space was read; None in output without details."""
    if _ALL_ONES.search(f"{block.name}\n{block.text}"):
        return False
    return True if "Capabilities:" in block.text else None


def _regions_without_address(block: _Block) -> int | None:
    found = [region["address"] for region in _REGION.finditer(block.text)]
    return sum(address in ("<unassigned>", "<ignored>") for address in found) if found else None


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
        ids = _IDS.search(above.name)
        path.append(PciBridge(**_function(above), vendor_id=ids["vendor"] if ids else None))
        top = above
    # A listing of selected devices (-d 10de:) lacks the bridges. A full one begins with the first function of a domain.
    domain = block.bus_id.partition(":")[0]
    if f"{domain}:00:00.0" not in known - {block.bus_id} and "Root Port" not in top.text:
        return None
    return tuple(reversed(path))


def _found(pattern: re.Pattern[str], block: _Block) -> str | None:
    found = pattern.search(block.text)
    return found[1] if found else None


def _number(pattern: re.Pattern[str], block: _Block) -> int | None:
    found = _found(pattern, block)
    return int(found) if found else None
