"""Reads ``nvidia-smi -q -x``: its XML."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

from kdoctor.errors import UsageError
from kdoctor_recordings.formats.gpu_fields import PROCESS, not_understood, read_gpu
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor_recordings.formats.smi_query import DRIVER, HEAD, kernel_version, with_indices
from kdoctor_recordings.formats.unindented import SEGMENTS
from kdoctor_recordings.formats.values import read_all

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
_PROCESSES = "processes"
_REASON = re.compile(r"clocks_(?:event|throttle)_reason_")
_MOST_LEVELS = 64
"""Levels of elements. nvidia-smi writes nine."""
END = "</nvidia_smi_log>"
_ROOT = re.compile(r"<(?:\?xml|!DOCTYPE|nvidia_smi_log)\b")
_PART = re.compile(r"\s*<(?:gpu id=.*|(?P<name>\w+))>\s*")


def begins_part(line: str) -> bool:
    """Whether a part of the document begins here: a GPU, or a group of its values that become facts."""
    found = _PART.fullmatch(line)
    return bool(found and (not found["name"] or _named(found["name"]) in SEGMENTS))


class _Tree:
    """The elements of a document, so that the complete part of a truncated file can be used."""

    def __init__(self, section: Section) -> None:
        self.root = ET.Element("")
        self.notes: tuple[str, ...] = ()
        self._ended: set[ET.Element] = set()
        document, tag, _ = "\n".join(section.lines).strip().partition(END)
        if not _ROOT.match(document):
            of_gpu = document if document.startswith("<gpu ") else f"<gpu>{document}</gpu>"
            document, tag = f"<nvidia_smi_log>{of_gpu}", END
        if "<!ENTITY" in document:
            raise UsageError(f"{section.file}: the XML declares entities, which is not supported")
        parser: Any = ET.XMLPullParser(["start", "end"])
        try:
            parser.feed(document + tag)
            self._read(parser, section.file)
            parser.close()
        except ET.ParseError as error:
            where = f"{section.file}: the XML is incomplete or invalid from line {error.position[0]} on"
            self.notes = (f"{where}; the rest was ignored",)

    def _read(self, parser: Any, file: str) -> None:
        depth = 0
        for event, element in parser.read_events():
            if event == "end":
                depth -= 1
                self._ended.add(element)
                continue
            self.root = self.root if depth else element
            depth += 1
            if depth > _MOST_LEVELS:
                raise UsageError(f"{file}: the XML is nested too deeply (more than {_MOST_LEVELS} levels)")

    def has(self, element: ET.Element) -> bool:
        """Whether the element is complete."""
        return element in self._ended

    def leaves(self, element: ET.Element, *above: str) -> Iterator[tuple[str, str]]:
        """Paths and texts of the complete elements in this one without others in them, and of the list of processes."""
        for child in element:
            yield from self.leaves(child, *above, _name(child))
        path = "/".join(above)
        if self.has(element) and (len(element) == 0 or path == _PROCESSES):
            # Other elements in the list of processes may be processes, so it is not empty.
            yield path, "of another form" if len(element) else (element.text or "").strip()


def _name(element: ET.Element) -> str:
    return _named(element.tag)


def _named(tag: str) -> str:
    return _NAMES.get(tag) or _REASON.sub("", tag).replace("_", " ")


def parse(section: Section) -> Part:
    """The driver and the GPUs of the document.

    Raises:
        UsageError: it declares entities, or is nested too deeply.
    """
    tree = _Tree(section)
    head: dict[str, str] = {}
    for path, text in (
        leaf for child in tree.root if _name(child) != "gpu" for leaf in tree.leaves(child, _name(child))
    ):
        head.setdefault(path, text)
    driver, errors = read_all(DRIVER, head)
    gpus = [_gpu(child, tree) for child in tree.root if _name(child) == "gpu"]
    return section.part(
        driver=driver,
        driver_errors=errors,
        gpus=with_indices(gpus, driver.get("count")),
        kernel_version=kernel_version(head),
        not_understood=tuple(not_understood(head, HEAD)),
        notes=tree.notes,
    )


def _gpu(element: ET.Element, tree: _Tree) -> GpuPart:
    entries: dict[str, str] = {}
    processes: list[dict[str, str]] = []
    for child in element:
        name = _name(child)
        listed = [one for one in child if name == _PROCESSES and _name(one) == "process info"]
        for process in listed:
            processes.append({})
            for path, text in tree.leaves(process):
                if path in PROCESS:
                    processes[-1].setdefault(path, text)
                elif path:
                    entries.setdefault(f"{_PROCESSES}/{path}", text)
        for path, text in tree.leaves(child, name):
            if not path.startswith(f"{_PROCESSES}/process info"):
                entries.setdefault(path, text)
    if entries.get(_PROCESSES) == "":
        entries[_PROCESSES] = "None"  # the element is complete, and empty
    bus_id = sysfs_bus_id(element.get("id", "")) or sysfs_bus_id(entries.get("pci/pci bus id", ""))
    return read_gpu(bus_id, entries, processes, cut=not tree.has(element))
