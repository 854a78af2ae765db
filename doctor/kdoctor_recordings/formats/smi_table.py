"""Reads the table that ``nvidia-smi`` prints without options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kdoctor.facts import GpuProcess
from kdoctor_recordings.formats import smi_failure, values
from kdoctor_recordings.formats.gpu_fields import FIELDS
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor_recordings.formats.smi_query import DRIVER, kernel_version
from kdoctor_recordings.formats.values import is_compute, is_graphics, read_all

_VERSIONS = re.compile(r"(?P<name>CUDA (?:(?:UMD|Driver) )?Version|Driver Version|KMD Version):\s*(?P<text>\S+)")
BEGINS = _FIRST = re.compile(
    r"\|\s*(?P<index>\d+)\s{1,2}(?P<name>[^\s|][^|]*?)\s+(?P<persistence_mode>[^\s|]+)\s*"
    r"\|\s*(?P<bus>[0-9A-Fa-f:.]+|N/A)\s+\S+\s*\|\s*(?P<ecc_uncorrected_volatile>\S.*?)\s*\|"
)
PROCESSES = re.compile(r"\|\s*Processes:")
_SECOND = re.compile(
    r"\|\s*(?P<fan_speed_percent>N/A|ERR!|\d+%)\s+(?P<temperature_c>\S+)\s+(?P<performance_state>\S+)\s+"
    r"(?P<power_draw_w>\S+?)\s*/\s*\S+\s*"
    r"\|\s*(?:(?P<memory_used_bytes>\S+)\s*/\s*(?P<memory_total_bytes>\S+)"
    r"|(?P<why>Not Supported|N/A|ERR!|Unknown Error|GPU [a-z ]+))\s*"
    r"\|\s*(?P<utilization_gpu_percent>\S+)\s+(?P<compute_mode>\S.*?)\s*\|"
)
_THIRD = re.compile(r"\|\s*\|\s*\|\s*(?P<mig_mode>\S+)\s*\|")
_MIG = re.compile(
    r"\|\s*(?P<index>\d+)\s+(?:\d+\s+\d+\s+\d+\s*\|\s*\d+MiB\s*/\s*\d+MiB|(?:\d+\s+)?MIG \d\S*\s[\s\d]*\d:\d+)\s*\|"
)
"""The first row of a MIG device, or a row of ``nvidia-smi mig -lgi`` or ``-lci``."""
_PROCESS = re.compile(
    r"\|\s*(?P<gpu>\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d+)\s+(?P<type>[CGM+]+)\s+(?P<name>.*?)\s+"
    r"(?P<used>\d+Mi?B|N/A)\s*\|"
)
_FIELDS: values.Fields = {
    name: (FIELDS[name][0], (name,))
    for pattern in (_FIRST, _SECOND, _THIRD)
    for name in pattern.groupindex
    if name in FIELDS
}


def parse(section: Section) -> Part:
    """The driver, the GPUs (one row of two or three lines each) and their processes.

    A line that is cut off lacks its closing bar, and is ignored.
    """
    lines = tuple(line.rstrip() for line in section.lines)
    closed = [line for line in lines if line.endswith("|") or line.startswith("NVITOP")]
    head = {found["name"].lower(): found["text"] for line in closed for found in _VERSIONS.finditer(line)}
    driver, errors = read_all(DRIVER, head)
    if any("vGPU ID" in line for line in closed):  # only a host prints the table of nvidia-smi vgpu
        host = GpuPart(facts={"virtualization_mode": "host-vgpu"})
        return section.part(driver=driver, driver_errors=errors, gpus=(host,))
    start = next((place for place, line in enumerate(lines) if PROCESSES.match(line)), None)
    processes = None if start is None else _processes(lines[start:])
    found = list(_rows(lines[:start]))
    listed = {row["index"] for row in found}
    divided = dict.fromkeys(row["index"] for row in filter(None, map(_MIG.match, lines)) if row["index"] not in listed)
    return section.part(
        driver={**({} if start is None else _count(found, section)), **driver},
        driver_errors=errors,
        gpus=(
            *(_gpu(row, processes) for row in found),
            *(GpuPart(index=int(index), facts={"mig_mode": True}) for index in divided),
            *(_busy(processes) if processes and not found else ()),
            *filter(None, map(smi_failure.lost, lines)),
            *smi_failure.damaged(lines),
        ),
        kernel_version=kernel_version(head),
        not_understood=tuple(lines[place].strip("| ") for place in rows(lines) if _is_unknown(lines[place])),
    )


def rows(lines: Sequence[str]) -> range:
    """The places of the GPUs' rows, without the titles above, and the MIG devices and the processes below."""
    start = next((place for place, line in enumerate(lines) if line.startswith("|==")), len(lines))
    below = (place for place, line in enumerate(lines) if re.match(r"\|\s*(?:MIG devices|Processes):", line))
    return range(start + 1, next(below, len(lines)))


def _is_unknown(line: str) -> bool:
    return bool(line.endswith("|") and line.strip("| -+=")) and not any(
        pattern.match(line) for pattern in (_FIRST, _SECOND, _THIRD, _MIG)
    )


def _rows(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    row: dict[str, str] = {}
    for line in lines:
        first = _FIRST.match(line)
        if first:
            if row:
                yield row
            row = first.groupdict(default="")
            if row["ecc_uncorrected_volatile"] == "On":  # the MIG devices have the counts
                row["mig_mode"] = "Enabled"
            continue
        if line.startswith("+") and row:
            yield row
            row = {}
        found = _SECOND.match(line) or _THIRD.match(line)
        if row and found:
            row = {**found.groupdict(default=""), **row}
            row["memory_used_bytes"] = row.get("memory_used_bytes") or row.get("why", "")
    if row:
        yield row


def _count(rows: Sequence[dict[str, str]], section: Section) -> dict[str, int]:
    """The number of GPUs, if a complete table lists them from 0 on. Selected GPUs (``-i``) may be fewer."""
    selected = re.search(r"\s(?:-i|--id)\b", section.command or "")
    is_whole = [int(row["index"]) for row in rows] == list(range(len(rows)))
    return {"count": len(rows)} if rows and is_whole and not selected else {}


def _gpu(row: dict[str, str], processes: tuple[_Listed, _Listed] | None) -> GpuPart:
    counted = row["ecc_uncorrected_volatile"].replace("Off", "N/A")  # nothing is counted where ECC is off
    facts, errors = read_all(_FIELDS, {**row, "ecc_uncorrected_volatile": counted})
    index = int(row["index"])
    if processes is not None:
        facts["processes"], facts["graphics_processes"] = (listed.get(index, ()) for listed in processes)
    return GpuPart(index=index, bus_id=sysfs_bus_id(row["bus"]), facts=facts, errors=errors)


def _busy(processes: tuple[_Listed, _Listed]) -> Iterator[GpuPart]:
    """The GPUs of which only the processes are shown."""
    for index, compute in processes[0].items():
        yield GpuPart(index=index, facts={"processes": compute, "graphics_processes": processes[1][index]})


_Listed = dict[int, tuple[GpuProcess, ...]]
"""Processes by the GPU's index."""


def _processes(lines: Sequence[str]) -> tuple[_Listed, _Listed] | None:
    """Compute processes and those with a graphics context; None if the list is cut off or empty.

    In a container the list is empty because processes are hidden. On a free machine, nvidia-smi prints "No running
    processes found".
    """
    if not any(line.startswith("+") for line in lines):
        return None  # the box is not closed, so processes may be missing
    compute: _Listed = {}
    graphics: _Listed = {}
    for line in lines:
        if "No running processes found" in line:
            return {}, {}
        match = _PROCESS.match(line)
        if not match:
            continue
        index = int(match["gpu"])
        for kinds, found in ((is_compute, compute), (is_graphics, graphics)):
            found.setdefault(index, ())
            if kinds(match["type"]):
                found[index] = (*found[index], _process(match))
    return (compute, graphics) if compute else None


def _process(match: re.Match[str]) -> GpuProcess:
    used = values.read_or_none(values.mebibytes, match["used"])
    # The table shortens long paths from the left.
    name = None if match["name"].startswith("...") else match["name"]
    return GpuProcess(pid=int(match["pid"]), used_memory_bytes=used, name=name)
