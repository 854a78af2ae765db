"""Reads ``nvidia-smi -q``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kdoctor.snapshot.imports import smi_failure, values
from kdoctor.snapshot.imports.gpu_fields import read_fields
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.processes import read_processes
from kdoctor.snapshot.imports.values import NotKnownError, Read

_GPU = re.compile(r"GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")
_ENTRY = re.compile(r"(?P<indent>[ \t]*)(?P<name>[^:\s][^:]*?)\s*(?: : ?(?P<value>.*))?")
_DRIVER: dict[str, tuple[Read, tuple[str, ...]]] = {
    "driver_version": (values.version, ("driver version",)),
    "cuda_driver_version": (values.version, ("cuda umd version", "cuda version")),
    "count": (values.count, ("attached gpus",)),
}
_INDENT = 4
"""Columns of a level."""


@dataclass(kw_only=True)
class _Block:
    """The lines of one GPU."""

    bus_id: str | None
    lost: GpuPart | None = None
    """Set where the GPU does not answer."""
    entries: dict[str, str] = field(default_factory=dict)
    """Path to text, as :mod:`kdoctor.snapshot.imports.gpu_fields` wants them."""
    processes: list[dict[str, str]] = field(default_factory=list)
    open_processes: bool = False
    """Whether the list of processes was the last that was read."""


def parse(section: Section) -> Part:
    """What the dump says. A last line without its end may be cut in the middle, and is left out."""
    lines = section.lines if section.whole else section.lines[:-1]
    first = next(iter(_starts(lines)), len(lines))
    head = {name: text for name, text, _ in _entries(lines[:first])}
    blocks = list(_blocks(lines[first:]))
    driver, errors = read_driver(head)
    parts = [
        _gpu(block, last=place == len(blocks) - 1, ended=section.ended, whole=section.whole)
        for place, block in enumerate(blocks)
    ]
    return Part(
        kind="nvidia-smi -q",
        file=section.file,
        driver=driver,
        driver_errors=errors,
        gpus=with_indices(parts, driver.get("count")),
        kernel_version=kernel_version(head),
    )


def read_driver(head: dict[str, str]) -> tuple[dict[str, object], dict[str, str]]:
    """Versions and count; the names of driver 610 (KMD and CUDA UMD Version) before those that it deprecates."""
    facts: dict[str, object] = {}
    errors: dict[str, str] = {}
    for name, (read, names) in _DRIVER.items():
        text = next((head[key] for key in names if key in head), None)
        if text is None:
            continue
        try:
            facts[name] = read(text)
        except NotKnownError as error:
            errors[name] = str(error)
    return facts, errors


def kernel_version(head: dict[str, str]) -> str | None:
    """The kernel module's version, which driver 610 and later name."""
    try:
        return values.version(head["kmd version"])
    except (KeyError, NotKnownError):
        return None


def with_indices(parts: Sequence[GpuPart], count: object) -> tuple[GpuPart, ...]:
    """The GPUs with their places as indices, unless some before them may be missing.

    A dump of chosen GPUs (``-i``) still says how many are attached. One that was cut off lacks the last ones, and the
    place of the others is right.
    """
    cut = bool(parts) and parts[-1].cut
    if isinstance(count, int) and len(parts) != count and not cut:
        return tuple(parts)
    return tuple(
        GpuPart(index=index, bus_id=part.bus_id, uuid=part.uuid, facts=part.facts, errors=part.errors, cut=part.cut)
        for index, part in enumerate(parts)
    )


def _starts(lines: Sequence[str]) -> list[int]:
    """The lines that begin what is said of a GPU; of one that does not answer that is all."""
    return [place for place, line in enumerate(lines) if _GPU.fullmatch(line) or smi_failure.LOST.match(line)]


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    starts = _starts(lines)
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        found = _GPU.fullmatch(lines[start])
        block = _Block(bus_id=sysfs_bus_id(found["address"]) if found else None, lost=smi_failure.lost(lines[start]))
        for path, text, is_process in _entries(lines[start + 1 : end]):
            block.open_processes = path == "processes" or path.startswith("processes/")
            if not is_process:
                block.entries.setdefault(path, text)
                continue
            name = path.rpartition("/")[2]
            if name == "process id":
                block.processes.append({})
            if block.processes:
                block.processes[-1].setdefault(name, text)
        yield block


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Path, text and whether it is of a process; a heading counts, too, with an empty text."""
    stack: list[tuple[int, str]] = []
    for line in lines:
        found = _ENTRY.fullmatch(line)
        if not found:
            continue
        indent = len(found["indent"].expandtabs(_INDENT))
        while stack and stack[-1][0] >= indent:
            stack.pop()
        name = " ".join(found["name"].lower().split())
        stack.append((indent, name))
        path = "/".join(part for _, part in stack)
        if found["value"] is not None:
            yield path, found["value"].strip(), path.startswith("processes/")
        elif path == "processes":
            yield path, "", False


def _gpu(block: _Block, *, last: bool, ended: bool, whole: bool) -> GpuPart:
    if block.lost:
        return block.lost
    facts, errors = read_fields(block.entries)
    # Processes, and in newer drivers a few lines more, are the last that is said of a GPU.
    cut = last and (not whole or (not ended and "processes" not in block.entries))
    if "processes" in block.entries:
        more = last and block.open_processes and not ended
        told = read_processes(block.entries["processes"], block.processes, more=more)
        if isinstance(told, str):
            errors["processes"] = told
        else:
            facts["processes"] = told
    return GpuPart(bus_id=block.bus_id, uuid=facts.get("uuid"), facts=facts, errors=errors, cut=cut)
