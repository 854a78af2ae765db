"""Reads hwloc's XML (``lstopo machine.xml``): the PCI tree, and the GPUs as NVML numbers them.

It gives the way to each device, its NUMA node, and no links: hwloc tells a link's bandwidth, not its speed and width.
Source: https://www.open-mpi.org/projects/hwloc/doc/ and hwloc2.dtd for elements and attributes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from xml.parsers import expat

from kdoctor.errors import UsageError
from kdoctor.facts import PciBridge, PciDevice, PciDevices
from kdoctor.snapshot.imports import values
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.values import NotKnownError

START = re.compile(r"\s*<(?:!DOCTYPE topology|topology[ >])")
END = "</topology>"

_TYPE = re.compile(
    r"(?P<class>[0-9a-f]{4}) \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\] "
    r"\[(?P<subsystem>[0-9a-f]{4}:[0-9a-f]{4})\]"
)
_NVML = re.compile(r"nvml(\d+)")
_NVIDIA = "10de"
_DEEPEST = 64
"""Levels of objects; the largest machines have some twenty."""


@dataclass(kw_only=True)
class _Object:
    """An object whose element is open."""

    kind: str
    bridge: PciBridge | None = None
    device: int | None = None
    """The place in the list of devices, for a device of NVIDIA's."""
    gpu: int | None = None
    """NVML's index, for a device as NVML sees it."""
    numa: int | None = None
    """The one NUMA node that it and what is in it are near to."""


class _Reader:
    """Takes the objects as they begin: all that is told of one stands in its first tag, or in its children's."""

    def __init__(self, file: str) -> None:
        self.devices: list[PciDevice] = []
        self.gpus: dict[int, dict[str, str]] = {}
        """By NVML's index: bus id, and what hwloc tells of it by its own names."""
        self._file = file
        self._open: list[_Object] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if len(self._open) >= _DEEPEST:
            raise UsageError(f"{self._file}: its XML is nested too deeply for a topology of hwloc")
        above = self._open[-1] if self._open else None
        item = _Object(kind=name, numa=above.numa if above else None)
        if name == "object":
            self._object(item, attributes)
        elif name == "info" and above and above.gpu is not None:
            self.gpus[above.gpu][attributes.get("name", "")] = attributes.get("value", "")
        self._open.append(item)

    def _object(self, item: _Object, attributes: dict[str, str]) -> None:
        if "nodeset" in attributes:
            item.numa = _only_member(attributes["nodeset"])
        bus_id = sysfs_bus_id(attributes.get("pci_busid", ""))
        found = _TYPE.match(attributes.get("pci_type", ""))
        if bus_id and found and attributes.get("type") == "Bridge":
            item.bridge = PciBridge(bus_id=bus_id, device_id=found["device"], vendor_id=found["vendor"])
        elif bus_id and found and found["vendor"] == _NVIDIA:
            item.device = len(self.devices)
            self.devices.append(
                PciDevice(
                    bus_id=bus_id,
                    device_id=found["device"],
                    device_class=found["class"],
                    subsystem=None if found["subsystem"].startswith("0000:") else found["subsystem"],
                    driver=None,
                    numa_node=item.numa,
                    path=tuple(above.bridge for above in self._open if above.bridge),
                )
            )
        number = _NVML.fullmatch(attributes.get("name", ""))
        above = self._open[-1] if self._open else None
        if number and above and above.device is not None:
            item.gpu = int(number[1])
            # NVML sees it, so NVIDIA's driver is bound to it.
            self.devices[above.device] = replace(self.devices[above.device], driver="nvidia")
            self.gpus[item.gpu] = {"bus_id": self.devices[above.device].bus_id}

    def end(self, _: str) -> None:
        """An element ends."""
        self._open.pop()

    def refuse(self, *_: object) -> None:
        """An entity is declared."""
        raise UsageError(f"{self._file}: its XML declares entities, which hwloc never does: it is not read")


def parse(section: Section) -> Part:
    """What the topology says.

    Raises:
        UsageError: it declares entities, or is nested beyond measure.
    """
    reader = _Reader(section.file)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.EntityDeclHandler = reader.refuse
    notes: list[str] = []
    try:
        text, end, _ = "\n".join(section.lines).strip().partition(END)
        parser.Parse(text + end, True)  # noqa: FBT003 - expat's own way to say "the last piece"
    except expat.ExpatError as error:
        notes.append(f"{section.file}: its XML ends or breaks at line {error.lineno}: only what stands before is read")
    devices = tuple(sorted(reader.devices, key=lambda device: device.bus_id))
    return Part(
        kind="lstopo",
        file=section.file,
        gpus=tuple(_gpu(index, told) for index, told in sorted(reader.gpus.items())),
        groups=(PciDevices(devices=devices),),
        notes=tuple(notes),
    )


def _gpu(index: int, told: dict[str, str]) -> GpuPart:
    facts: dict[str, str] = {}
    errors: dict[str, str] = {}
    for field, name, read in (("name", "GPUModel", values.free_text), ("uuid", "NVIDIAUUID", values.uuid)):
        if name not in told:
            continue
        try:
            facts[field] = read(told[name])
        except NotKnownError as error:
            errors[field] = str(error)
    return GpuPart(index=index, bus_id=told["bus_id"], uuid=facts.get("uuid"), facts=facts, errors=errors)


def _only_member(text: str) -> int | None:
    """The one member of a set in hwloc's words (``0x00000002``); None where it has several or none."""
    words = text.split(",")
    try:
        number = sum(int(word or "0", 16) << 32 * place for place, word in enumerate(reversed(words)))
    except ValueError:
        return None
    return number.bit_length() - 1 if number.bit_count() == 1 else None
