"""Reads ``nvidia-smi -q -x``: its XML."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdoctor.snapshot.imports.gpu_fields import read_gpu
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.smi_query import DRIVER, kernel_version, with_indices
from kdoctor.snapshot.imports.values import read_all
from kdoctor.snapshot.imports.xml_stream import read_elements

_PROCESS_NAMES = {"pid": "process id", "process name": "name", "used memory": "used gpu memory"}
"""Names of the XML to those of ``nvidia-smi -q``."""


@dataclass(kw_only=True)
class _Block:
    bus_id: str | None
    entries: dict[str, str] = field(default_factory=dict)
    processes: list[dict[str, str]] = field(default_factory=list)
    ended: bool = False


class _Reader:
    """Collects the elements as they end."""

    def __init__(self) -> None:
        self.head: dict[str, str] = {}
        self.blocks: list[_Block] = []
        self._path: list[str] = []
        self._text: list[str] = []
        self._leaf = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._path.append(name.replace("_", " "))
        self._text.clear()
        self._leaf = True
        if self._path[1:] == ["gpu"]:
            self.blocks.append(_Block(bus_id=sysfs_bus_id(attributes.get("id", ""))))
        elif self._path[1:] == ["gpu", "processes", "process info"]:
            self.blocks[-1].processes.append({})

    def text(self, text: str) -> None:
        """Text of the element that began last."""
        if self._leaf:
            self._text.append(text)

    def end(self, _: str) -> None:
        """An element ends."""
        path, text = self._path[1:], "".join(self._text).strip()
        if path[:1] != ["gpu"]:
            if self._leaf and len(path) == 1:
                self.head.setdefault(path[0], text)
        elif len(path) == 1:
            self.blocks[-1].ended = True
        elif path[1:3] == ["processes", "process info"]:
            if self._leaf and len(path) == 4:  # noqa: PLR2004 - gpu, processes, process info, a field
                self.blocks[-1].processes[-1].setdefault(_PROCESS_NAMES.get(path[3], path[3]), text)
        elif self._leaf or path[1:] == ["processes"]:
            self.blocks[-1].entries.setdefault("/".join(path[1:]), text)
        self._path.pop()
        self._text.clear()
        self._leaf = False


def parse(section: Section) -> Part:
    """The driver and the GPUs of the document.

    Raises:
        UsageError: it declares entities, or is nested too deeply.
    """
    reader = _Reader()
    notes = read_elements(section, start=reader.start, end=reader.end, text=reader.text, last_tag="</nvidia_smi_log>")
    driver, errors = read_all(DRIVER, reader.head)
    return Part(
        kind="nvidia-smi -q -x",
        file=section.file,
        driver=driver,
        driver_errors=errors,
        gpus=with_indices([_gpu(block) for block in reader.blocks], driver.get("count")),
        kernel_version=kernel_version(reader.head),
        notes=notes,
    )


def _gpu(block: _Block) -> GpuPart:
    if block.entries.get("processes") == "":
        block.entries["processes"] = "None"  # the element is complete, and empty
    bus_id = block.bus_id or sysfs_bus_id(block.entries.get("pci/pci bus id", ""))
    return read_gpu(bus_id, block.entries, block.processes, cut=not block.ended)
