"""Reads the table that ``nvidia-smi`` prints without options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kdoctor.facts import GpuProcess
from kdoctor.snapshot.imports import smi_failure, values
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.smi_query import kernel_version, read_driver
from kdoctor.snapshot.imports.values import NotKnownError, Read

_VERSIONS = re.compile(r"(?P<name>CUDA UMD Version|CUDA Version|Driver Version|KMD Version):\s*(?P<text>\S+)")
_FIRST = re.compile(
    r"\|\s*(?P<index>\d+)\s{1,2}(?P<name>\S.*?)\s+(?P<persistence>\S+)\s*"
    r"\|\s*(?P<bus>[0-9A-Fa-f:.]+)\s+\S+\s*\|\s*(?P<ecc>\S.*?)\s*\|"
)
_SECOND = re.compile(
    r"\|\s*(?P<fan>N/A|ERR!|\d+%)\s+(?P<temperature>\S+)\s+(?P<state>\S+)\s+(?P<power>\S+?)\s*/\s*\S+\s*"
    r"\|\s*(?P<used>\S+)\s*/\s*(?P<total>\S+)\s*\|\s*(?P<busy>\S+)\s+(?P<mode>\S.*?)\s*\|"
)
_THIRD = re.compile(r"\|\s*\|\s*\|\s*(?P<mig>\S+)\s*\|")
_PROCESS = re.compile(
    r"\|\s*(?P<gpu>\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d+)\s+(?P<type>[CGM+]+)\s+(?P<name>.*?)\s+"
    r"(?P<used>\d+MiB|N/A)\s*\|"
)
_FIELDS: dict[str, tuple[str, Read]] = {
    "name": ("name", values.free_text),
    "persistence_mode": ("persistence", values.enabled),
    "ecc_uncorrected_volatile": ("ecc", values.count),
    "fan_speed_percent": ("fan", values.percent),
    "temperature_c": ("temperature", values.degrees),
    "performance_state": ("state", values.performance_state),
    "power_draw_w": ("power", values.watts),
    "memory_used_bytes": ("used", values.mebibytes),
    "memory_total_bytes": ("total", values.mebibytes),
    "utilization_gpu_percent": ("busy", values.percent),
    "compute_mode": ("mode", values.compute_mode),
    "mig_mode": ("mig", values.enabled),
}


def parse(section: Section) -> Part:
    """What the table says: one row, of two or three lines, a GPU; then the processes.

    A line that is cut in the middle lacks its closing bar, and is not read.
    """
    lines = tuple(line.rstrip() for line in section.lines)
    closed = [line for line in lines if line.endswith("|")]
    head = {found["name"].lower(): found["text"] for line in closed for found in _VERSIONS.finditer(line)}
    driver, errors = read_driver(head)
    start = next((place for place, line in enumerate(lines) if re.match(r"\|\s*Processes:", line)), None)
    table = lines if start is None else lines[:start]
    processes = None if start is None else _processes(lines[start:])
    return Part(
        kind="nvidia-smi",
        file=section.file,
        driver=driver,
        driver_errors=errors,
        gpus=(*(_gpu(row, processes) for row in _rows(table)), *filter(None, map(smi_failure.lost, lines))),
        kernel_version=kernel_version(head),
    )


def _rows(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """The texts of each GPU's row."""
    row: dict[str, str] = {}
    for line in lines:
        first = _FIRST.match(line)
        if first:
            if row:
                yield row
            row = first.groupdict()
            continue
        if line.startswith("+") and row:
            yield row
            row = {}
        found = _SECOND.match(line) or _THIRD.match(line)
        if row and found:
            row = {**found.groupdict(), **row}
    if row:
        yield row


def _gpu(row: dict[str, str], processes: dict[int, tuple[GpuProcess, ...]] | None) -> GpuPart:
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field, (column, read) in _FIELDS.items():
        if column not in row:
            continue
        try:
            facts[field] = read(row[column])
        except NotKnownError as error:
            errors[field] = str(error)
    index = int(row["index"])
    if processes is not None:
        facts["processes"] = processes.get(index, ())
    return GpuPart(index=index, bus_id=sysfs_bus_id(row["bus"]), facts=facts, errors=errors)


def _processes(lines: Sequence[str]) -> dict[int, tuple[GpuProcess, ...]] | None:
    """Compute processes by the GPU's index; None where the list is cut or says nothing.

    In a container the list is empty for lack of sight: nvidia-smi says "No running processes found" on a free machine.
    """
    if not any(line.startswith("+") for line in lines):
        return None  # the box is not closed: others may have followed
    found: dict[int, tuple[GpuProcess, ...]] = {}
    for line in lines:
        if "No running processes found" in line:
            return {}
        match = _PROCESS.match(line)
        if match and "C" in match["type"]:
            used = None if match["used"] == "N/A" else values.mebibytes(match["used"])
            # The table cuts long paths from the left; what is left of one is no path.
            name = None if match["name"].startswith("...") else match["name"]
            process = GpuProcess(pid=int(match["pid"]), used_memory_bytes=used, name=name)
            found[int(match["gpu"])] = (*found.get(int(match["gpu"]), ()), process)
        elif match:
            found.setdefault(int(match["gpu"]), ())
    return found or None
