"""Reads NCCL's XML of a topology: a dump (``NCCL_TOPO_DUMP_FILE``), or the file that a cloud gives its machines.

A file may be written by hand, with invented addresses of PCIe switches (``ffff:ff:01.0``).
Source: https://github.com/NVIDIA/nccl/blob/master/src/graph/xml.cc for elements and attributes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import combinations

from kdoctor.facts import PciBridge, PciDevice, PciDevices
from kdoctor.snapshot.imports.part import GpuPart, PairPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.xml_stream import read_elements

START = re.compile(r"\s*<system version=")
END = "</system>"
_GPU_CLASSES = ("0x0300", "0x0302")
_BRIDGE_CLASS = "0x0604"


@dataclass(kw_only=True)
class _Gpu:
    """A GPU, and what its children say."""

    device: PciDevice
    index: int | None = None
    links: dict[str, int] = field(default_factory=dict)
    """Address of the device at the other end to the number of NVLinks."""


class _Reader:
    """Collects the GPUs as their elements begin."""

    def __init__(self) -> None:
        self.gpus: list[_Gpu] = []
        self._numa: int | None = None
        self._open: list[PciBridge | _Gpu | None] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        above = next((item for item in reversed(self._open) if isinstance(item, _Gpu)), None)
        opened: PciBridge | _Gpu | None = None
        if name == "cpu":
            numa = attributes.get("numaid", "")
            self._numa = int(numa) if numa.isdecimal() else None
        elif name == "pci":
            opened = self._pci(attributes)
        elif name == "gpu" and above and attributes.get("dev", "").isdecimal():
            above.index = int(attributes["dev"])
        elif name == "nvlink" and above and attributes.get("count", "").isdecimal():
            target = sysfs_bus_id(attributes.get("target", ""))
            if target:
                above.links[target] = int(attributes["count"])
        self._open.append(opened)

    def _pci(self, attributes: dict[str, str]) -> PciBridge | _Gpu | None:
        bus_id, of_class = sysfs_bus_id(attributes.get("busid", "")), attributes.get("class", "")
        if bus_id and of_class.startswith(_BRIDGE_CLASS):
            return PciBridge(bus_id=bus_id, device_id=None)
        if not bus_id or not of_class.startswith(_GPU_CLASSES) or attributes.get("vendor", "0x10de") != "0x10de":
            return None
        width = attributes.get("link_width", "")
        gpu = _Gpu(
            device=PciDevice(
                bus_id=bus_id,
                device_id=attributes.get("device", "").removeprefix("0x") or None,
                device_class=of_class[2:6],
                # NCCL reads the machine through CUDA.
                driver="nvidia",
                numa_node=self._numa,
                link_speed=attributes.get("link_speed") or None,
                link_width=int(width) if width.isdecimal() and int(width) else None,
                path=tuple(item for item in self._open if isinstance(item, PciBridge)),
            )
        )
        self.gpus.append(gpu)
        return gpu

    def end(self, _: str) -> None:
        """An element ends."""
        self._open.pop()


def _level(one: PciDevice, other: PciDevice) -> str:
    """The distance as nvidia-smi names it. NCCL's tree has no host bridges, so it shows NODE as PHB."""
    if one.path and other.path and one.path[0] == other.path[0]:
        return "PIX" if one.path[-1] == other.path[-1] else "PXB"
    return "PHB" if one.numa_node == other.numa_node and one.numa_node is not None else "SYS"


def parse(section: Section) -> Part:
    """The PCI devices, and the NVLinks between GPUs.

    Raises:
        UsageError: it declares entities, or is nested too deeply.
    """
    reader = _Reader()
    notes = read_elements(section, start=reader.start, end=reader.end, last_tag=END)
    gpus = sorted(reader.gpus, key=lambda gpu: gpu.device.bus_id)
    indices = {gpu.device.bus_id: place if gpu.index is None else gpu.index for place, gpu in enumerate(gpus)}
    pairs: dict[tuple[int, int], PairPart] = {}
    for one, other in combinations(gpus, 2):
        first, second = sorted((indices[one.device.bus_id], indices[other.device.bus_id]))
        links = one.links.get(other.device.bus_id) or other.links.get(one.device.bus_id)
        facts = {"level": _level(one.device, other.device), **({"nvlinks": links} if links else {})}
        pairs[first, second] = PairPart(facts=facts)
    return Part(
        kind="NCCL topology",
        file=section.file,
        gpus=tuple(GpuPart(index=indices[gpu.device.bus_id], bus_id=gpu.device.bus_id) for gpu in gpus),
        pairs=pairs,
        groups=(PciDevices(devices=tuple(gpu.device for gpu in gpus)),),
        notes=(*notes, f"{section.file}: an NCCL topology may be written by hand; its links are not measured"),
    )
