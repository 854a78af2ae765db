"""Reads ``nvidia-smi -q -x``: its XML."""

import re
from dataclasses import dataclass, field

from kdoctor_recordings.formats.gpu_fields import PROCESS, read_gpu
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor_recordings.formats.smi_query import DRIVER, kernel_version, unknown_head, with_indices
from kdoctor_recordings.formats.values import read_all
from kdoctor_recordings.formats.xml_stream import read_elements

_NAMES = {
    "uuid": "gpu uuid",
    "pci_gpu_link_info": "gpu link info",
    "pcie_gen": "pcie generation",
    "link_widths": "link width",
    "current_link_gen": "current",
    "max_link_gen": "max",
    "max_device_link_gen": "device max",
    "current_link_width": "current",
    "max_link_width": "max",
    "replay_counter": "replays since reset",
    "current_mig": "current",
    "pending_mig": "pending",
    "current_ecc": "current",
    "pending_ecc": "pending",
    "remapped_row_corr": "correctable error",
    "remapped_row_unc": "uncorrectable error",
    "remapped_row_pending": "pending",
    "remapped_row_failure": "remapping failure occurred",
    "gpu_temp": "gpu current temp",
    "gpu_temp_slow_threshold": "gpu slowdown temp",
    "gpu_temp_max_threshold": "gpu shutdown temp",
    "gpu_temp_tlimit": "gpu t.limit temp",
    "gpu_temp_slow_tlimit_threshold": "gpu slowdown t.limit temp",
    "gpu_temp_max_tlimit_threshold": "gpu shutdown t.limit temp",
    "sm_clock": "sm",
    "mem_clock": "memory",
    "gpu_util": "gpu",
    "memory_util": "memory",
    "pid": "process id",
    "process_name": "name",
    "used_memory": "used gpu memory",
}
"""Elements of the XML to the names in ``nvidia-smi -q``. Other names differ in underscores only."""
_REASON = re.compile(r"clocks_(?:event|throttle)_reason_")


@dataclass(kw_only=True)
class _Block:
    bus_id: str | None
    entries: dict[str, str] = field(default_factory=dict)
    processes: list[dict[str, str]] = field(default_factory=list)
    ended: bool = False


class _Reader:
    def __init__(self) -> None:
        self.head: dict[str, str] = {}
        self.blocks: list[_Block] = []
        self._path: list[str] = []
        self._text: list[str] = []
        self._leaf: bool = False
        """Whether the element that began last is open, and has no other in it."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._path.append(_NAMES.get(name) or _REASON.sub("", name).replace("_", " "))
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
            if self._leaf and path:
                self.head.setdefault("/".join(path), text)
        elif len(path) == 1:
            self.blocks[-1].ended = True
        elif path[1:3] == ["processes", "process info"]:
            if self._leaf and path[3:]:
                name = "/".join(path[3:])
                fields = self.blocks[-1].processes[-1] if name in PROCESS else self.blocks[-1].entries
                fields.setdefault(name if name in PROCESS else f"processes/{name}", text)
        elif self._leaf or path[1:] == ["processes"]:
            # Other elements in the list of processes may be processes, so it is not empty.
            self.blocks[-1].entries.setdefault("/".join(path[1:]), text if self._leaf else "of another form")
        self._path.pop()
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
        not_understood=tuple(unknown_head(reader.head)),
        notes=notes,
    )


def _gpu(block: _Block) -> GpuPart:
    if block.entries.get("processes") == "":
        block.entries["processes"] = "None"  # the element is complete, and empty
    bus_id = block.bus_id or sysfs_bus_id(block.entries.get("pci/pci bus id", ""))
    return read_gpu(bus_id, block.entries, block.processes, cut=not block.ended)
