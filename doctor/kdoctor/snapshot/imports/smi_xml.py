"""Reads ``nvidia-smi -q -x``: its XML.

The document is read as a stream of elements: what has ended is told, what the file's end cuts is not. The document
type that nvidia-smi names is never fetched, and a document that declares entities is refused: nvidia-smi declares none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from kdoctor.errors import UsageError
from kdoctor.snapshot.imports.gpu_fields import read_fields
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.processes import read_processes
from kdoctor.snapshot.imports.smi_query import kernel_version, read_driver, with_indices

_DEEPEST = 32
"""Levels of elements; nvidia-smi has nine."""
_PROCESS_NAMES = {"pid": "process id", "type": "type", "process_name": "name", "used_memory": "used gpu memory"}
_HEAD = {
    "driver_version": "driver version",
    "kmd_version": "kmd version",
    "cuda_version": "cuda version",
    "cuda_umd_version": "cuda umd version",
    "attached_gpus": "attached gpus",
}


@dataclass(kw_only=True)
class _Block:
    bus_id: str | None
    entries: dict[str, str] = field(default_factory=dict)
    processes: list[dict[str, str]] = field(default_factory=list)
    ended: bool = False


class _Reader:
    """Takes the elements as they end."""

    def __init__(self, file: str) -> None:
        self.head: dict[str, str] = {}
        self.blocks: list[_Block] = []
        self._file = file
        self._path: list[str] = []
        self._text: list[str] = []
        self._leaf = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if len(self._path) >= _DEEPEST:
            raise UsageError(f"{self._file}: its XML is nested too deeply for a dump of nvidia-smi")
        self._path.append(name)
        self._text.clear()
        self._leaf = True
        if self._path[1:] == ["gpu"]:
            self.blocks.append(_Block(bus_id=sysfs_bus_id(attributes.get("id", ""))))
        elif self._path[1:] == ["gpu", "processes", "process_info"]:
            self.blocks[-1].processes.append({})

    def text(self, text: str) -> None:
        """Text of the element that began last."""
        if self._leaf:
            self._text.append(text)

    def end(self, _: str) -> None:
        """An element ends."""
        path, text = self._path[1:], "".join(self._text).strip()
        if path[:1] != ["gpu"]:
            if self._leaf and len(path) == 1 and path[0] in _HEAD:
                self.head.setdefault(_HEAD[path[0]], text)
        elif len(path) == 1:
            self.blocks[-1].ended = True
        elif path[1:3] == ["processes", "process_info"]:
            if self._leaf and len(path) == 4:  # noqa: PLR2004 - gpu, processes, process_info, a field
                self.blocks[-1].processes[-1].setdefault(_PROCESS_NAMES.get(path[3], path[3]), text)
        elif self._leaf or path[1:] == ["processes"]:
            self.blocks[-1].entries.setdefault("/".join(path[1:]), text)
        self._path.pop()
        self._text.clear()
        self._leaf = False

    def refuse(self, *_: object) -> None:
        """An entity is declared."""
        raise UsageError(f"{self._file}: its XML declares entities, which no dump of nvidia-smi does: it is not read")


def parse(section: Section) -> Part:
    """What the dump says.

    Raises:
        UsageError: it declares entities, or is no dump of nvidia-smi.
    """
    reader = _Reader(section.file)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = reader.refuse
    notes: list[str] = []
    try:
        text, end, _ = "\n".join(section.lines).strip().partition("</nvidia_smi_log>")
        parser.Parse(text + end, True)  # noqa: FBT003 - expat's own way to say "the last piece"
    except expat.ExpatError as error:
        notes.append(f"{section.file}: its XML ends or breaks at line {error.lineno}: only what stands before is read")
    driver, errors = read_driver(reader.head)
    return Part(
        kind="nvidia-smi -q -x",
        file=section.file,
        driver=driver,
        driver_errors=errors,
        gpus=with_indices([_gpu(block) for block in reader.blocks], driver.get("count")),
        kernel_version=kernel_version(reader.head),
        notes=tuple(notes),
    )


def _gpu(block: _Block) -> GpuPart:
    facts, errors = read_fields(block.entries)
    if "processes" in block.entries:
        # The element's end stands in the file: nothing follows, and an empty element lists none.
        told = read_processes(block.entries["processes"] or "None", block.processes, more=False)
        if isinstance(told, str):
            errors["processes"] = told
        else:
            facts["processes"] = told
    bus_id = block.bus_id or sysfs_bus_id(block.entries.get("pci/pci_bus_id", ""))
    return GpuPart(bus_id=bus_id, uuid=facts.get("uuid"), facts=facts, errors=errors, cut=not block.ended)
