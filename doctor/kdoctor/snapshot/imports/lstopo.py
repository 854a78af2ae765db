"""Reads hwloc's XML (``lstopo machine.xml``): the PCI tree, and the GPUs as NVML numbers them.

It gives each device's path and NUMA node, and the NVLinks of pairs, but no PCIe links: hwloc writes a bandwidth instead
of speed and width.
Source: https://www.open-mpi.org/projects/hwloc/doc/ and hwloc2.dtd for elements and attributes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kdoctor.facts import PciBridge, PciDevice, PciDevices
from kdoctor.snapshot.imports import values
from kdoctor.snapshot.imports.lstopo_links import Bandwidths, pairs
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.values import read_all
from kdoctor.snapshot.imports.xml_stream import read_elements

START = re.compile(r"\s*<(?:!DOCTYPE topology|topology[ >])")
END = "</topology>"

_TYPE = re.compile(
    r"(?P<class>[0-9a-f]{4}) \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\] "
    r"\[(?P<subsystem>[0-9a-f]{4}:[0-9a-f]{4})\]"
)
_NVML = re.compile(r"nvml(\d+)")
_NVIDIA = "10de"
_FIELDS: values.Fields = {"name": (values.free_text, ("GPUModel",)), "uuid": (values.uuid, ("NVIDIAUUID",))}


@dataclass(kw_only=True)
class _Object:
    """An object whose element is open."""

    kind: str
    bridge: PciBridge | None = None
    device: int | None = None
    """The index in the list of devices, for an NVIDIA device."""
    gpu: int | None = None
    """NVML's index, for a GPU."""
    numa: int | None = None
    """The NUMA node that the object and its children are near, if it is exactly one."""


class _Reader:
    """Collects the objects as they begin: attributes are in the first tag of an object or of its children."""

    def __init__(self) -> None:
        self.devices: list[PciDevice] = []
        self.gpus: dict[int, dict[str, str]] = {}
        """By NVML's index: bus id, and hwloc's other information by its names."""
        self.names: dict[int, str] = {}
        """NVML's index to hwloc's index."""
        self.bandwidths = Bandwidths()
        self._open: list[_Object] = []
        self._text: list[str] | None = None
        """The text of the matrix of NVLinks, where it is open."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        above = self._open[-1] if self._open else None
        item = _Object(kind=name, numa=above.numa if above else None)
        if name == "object":
            self._object(item, attributes)
        elif name.startswith("distances2") and attributes.get("name") == "NVLinkBandwidth":
            self._text = []
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
            # NVML lists it, so it is bound to NVIDIA's driver.
            self.devices[above.device] = replace(self.devices[above.device], driver="nvidia")
            self.names[item.gpu] = attributes.get("gp_index", "")
            self.gpus[item.gpu] = {"bus_id": self.devices[above.device].bus_id}

    def text(self, text: str) -> None:
        """Text of the element that began last."""
        if self._text is not None:
            self._text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        self._open.pop()
        if self._text is None:
            return
        self.bandwidths.add(name, "".join(self._text))
        self._text = None if name.startswith("distances2") else []


def parse(section: Section) -> Part:
    """The PCI devices and the GPUs of the topology.

    Raises:
        UsageError: it declares entities, or is nested too deeply.
    """
    reader = _Reader()
    notes = read_elements(section, start=reader.start, end=reader.end, text=reader.text, last_tag=END)
    devices = tuple(sorted(reader.devices, key=lambda device: device.bus_id))
    by_address = {device.bus_id: device for device in devices}
    places = {index: by_address[infos["bus_id"]] for index, infos in reader.gpus.items()}
    return Part(
        kind="lstopo",
        file=section.file,
        driver={"count": len(reader.gpus)}
        if not notes and [*sorted(reader.gpus)] == [*range(len(reader.gpus))]
        else {},
        gpus=tuple(_gpu(index, infos) for index, infos in sorted(reader.gpus.items())),
        pairs=pairs(reader.bandwidths.links(reader.names), places),
        groups=(PciDevices(devices=devices),),
        notes=notes,
    )


def _gpu(index: int, infos: dict[str, str]) -> GpuPart:
    facts, errors = read_all(_FIELDS, infos)
    return GpuPart(index=index, bus_id=infos["bus_id"], uuid=facts.get("uuid"), facts=facts, errors=errors)


def _only_member(text: str) -> int | None:
    """The only member of a set in hwloc's notation (``0x00000002``); None if it has several or none."""
    words = text.split(",")
    try:
        number = sum(int(word or "0", 16) << 32 * place for place, word in enumerate(reversed(words)))
    except ValueError:
        return None
    return number.bit_length() - 1 if number.bit_count() == 1 else None
