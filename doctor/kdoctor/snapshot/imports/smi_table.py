"""Reads the table that ``nvidia-smi`` prints without options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kdoctor.facts import GpuProcess
from kdoctor.snapshot.imports import smi_failure, values
from kdoctor.snapshot.imports.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor.snapshot.imports.processes import is_compute
from kdoctor.snapshot.imports.smi_query import DRIVER, kernel_version
from kdoctor.snapshot.imports.values import read_all

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
_FIELDS: values.Fields = {
    "name": (values.free_text, ("name",)),
    "persistence_mode": (values.enabled, ("persistence",)),
    "ecc_uncorrected_volatile": (values.count, ("ecc",)),
    "fan_speed_percent": (values.percent, ("fan",)),
    "temperature_c": (values.degrees, ("temperature",)),
    "performance_state": (values.performance_state, ("state",)),
    "power_draw_w": (values.watts, ("power",)),
    "memory_used_bytes": (values.mebibytes, ("used",)),
    "memory_total_bytes": (values.mebibytes, ("total",)),
    "utilization_gpu_percent": (values.percent, ("busy",)),
    "compute_mode": (values.compute_mode, ("mode",)),
    "mig_mode": (values.enabled, ("mig",)),
}


def parse(section: Section) -> Part:
    """The driver, the GPUs (one row of two or three lines each) and their processes.

    A line that is cut off lacks its closing bar, and is ignored.
    """
    lines = tuple(line.rstrip() for line in section.lines)
    closed = [line for line in lines if line.endswith("|")]
    head = {found["name"].lower(): found["text"] for line in closed for found in _VERSIONS.finditer(line)}
    driver, errors = read_all(DRIVER, head)
    start = next((place for place, line in enumerate(lines) if re.match(r"\|\s*Processes:", line)), None)
    table = lines if start is None else lines[:start]
    processes = None if start is None else _processes(lines[start:])
    return Part(
        kind="nvidia-smi",
        file=section.file,
        driver=driver,
        driver_errors=errors,
        gpus=(
            *(_gpu(row, processes) for row in _rows(table)),
            *filter(None, map(smi_failure.lost, lines)),
            *smi_failure.damaged(lines),
        ),
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
    facts, errors = read_all(_FIELDS, row)
    index = int(row["index"])
    if processes is not None:
        facts["processes"] = processes.get(index, ())
    return GpuPart(index=index, bus_id=sysfs_bus_id(row["bus"]), facts=facts, errors=errors)


def _processes(lines: Sequence[str]) -> dict[int, tuple[GpuProcess, ...]] | None:
    """Compute processes by GPU index; None if the list is cut off or empty.

    In a container the list is empty because processes are hidden. On a free machine, nvidia-smi prints "No running
    processes found".
    """
    if not any(line.startswith("+") for line in lines):
        return None  # the box is not closed, so processes may be missing
    found: dict[int, tuple[GpuProcess, ...]] = {}
    for line in lines:
        if "No running processes found" in line:
            return {}
        match = _PROCESS.match(line)
        if match and is_compute(match["type"]):
            used = None if match["used"] == "N/A" else values.mebibytes(match["used"])
            # The table shortens long paths from the left.
            name = None if match["name"].startswith("...") else match["name"]
            process = GpuProcess(pid=int(match["pid"]), used_memory_bytes=used, name=name)
            found[int(match["gpu"])] = (*found.get(int(match["gpu"]), ()), process)
        elif match:
            found.setdefault(int(match["gpu"]), ())
    return found or None
