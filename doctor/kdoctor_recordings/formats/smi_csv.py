"""Reads ``nvidia-smi --query-gpu=... --format=csv``: any fields, with or without header and units.

Source: ``nvidia-smi --help-query-gpu`` and https://docs.nvidia.com/deploy/nvidia-smi/ for the names of the fields.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kdoctor_recordings.formats import values
from kdoctor_recordings.formats.gpu_fields import FIELDS, AbsentError, clock_event_reasons, fabric_problems
from kdoctor_recordings.formats.part import GpuPart, Part, Section, sysfs_bus_id
from kdoctor_recordings.formats.values import NotKnownError, Read, not_known, read_all, read_or_none

_NAME = re.compile(r"[a-zA-Z_0-9]+(?:\.[a-zA-Z_0-9]+)*(?: \[[\w%./ ]+\])?")
_FIELD = re.compile(r"(?<!\w)--query-gpu[= ](?P<fields>[\w.,]+)")
_OTHER_TABLES = {"pid", "retired_pages.address", "remapped_rows.histogram"}
"""Columns of --query-compute-apps and its kin, which have a row a process or page."""
_SELECTED = re.compile(r" (?:-i|--id)\b")
_ADDRESS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_UUID = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f-]{27}")


def _unit(read: Read, unit: str) -> Read:
    """With ``nounits``, the number stands alone."""
    return lambda text: read(f"{text.strip()}{unit}" if re.fullmatch(r"\s*-?[\d.]+\s*", text) else text)


def _valid(text: str) -> bool:
    if text.strip().lower() == "invalid":
        raise NotKnownError("infoROM is corrupted")
    if text.strip().lower() != "valid":
        raise not_known(text)
    return True


_UNITS: Mapping[Read, str] = {
    values.mebibytes: " MiB",
    values.watts: " W",
    values.megahertz: " MHz",
    values.percent: " %",
    values.degrees: " C",
    values.width: "x",
}


_READERS: Mapping[Read, Read] = {
    values.yes: values.mapped({"0": False, "1": True, "yes": True, "no": False}),
    **{read: _unit(read, unit) for read, unit in _UNITS.items()},
}
_FIELDS: values.Fields = {
    **{
        field: (_READERS.get(read, read), tuple(names.split("|")))
        for field, (read, _, names) in FIELDS.items()
        if names
    },
    "compute_capability": (values.version, ("compute_cap",)),
    "inforom_valid": (_valid, ("inforom.checksum_validation",)),
    "clock_event_reasons": (
        values.pattern(r"0x([0-9a-f]{1,16})", lambda mask: (int(mask, 16),)),
        ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    ),
}
_UNCORRECTED = "ecc.errors.uncorrected"
_PARTS = (("dram", "device_memory"), ("sram",), ("sram.parity",), ("sram.secded",))
"""The counters that add up to a total, by their names in several drivers."""
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(?!active|supported)(\w+)")
_HEALTH = re.compile(r"fabric\.health\.(\w+)")
_IDENTITY = {"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"}
_DRIVER: values.Fields = {"driver_version": (values.version, ("driver_version",)), "count": (values.count, ("count",))}
_KNOWN = {
    *_IDENTITY,
    *(name for _, names in (*_FIELDS.values(), *_DRIVER.values()) for name in names),
    *(f"{_UNCORRECTED}.{scope}.{name}" for scope in ("volatile", "aggregate") for names in _PARTS for name in names),
    "timestamp",
    "serial",
    "gpu_serial",
    "vbios_version",
}


def is_query(command: str) -> bool:
    """Whether the command prints such a table."""
    return bool(_FIELD.search(command)) and "csv" in command


def is_other_query(command: str) -> bool:
    """Whether the command prints another table, whose rows are not GPUs."""
    return "--query-" in command and not _FIELD.search(command)


def is_header(line: str) -> bool:
    """Whether the line names fields of ``--query-gpu``: all look like names, and one is known."""
    names = [name.strip() for name in line.split(",")]
    if not _OTHER_TABLES.isdisjoint(map(_bare, names)):
        return False
    return all(map(_NAME.fullmatch, names)) and any(_bare(name) in _KNOWN for name in names)


def begins(line: str) -> bool:
    """Whether the line is the header of several fields."""
    return "," in line and is_header(line)


def is_row(line: str) -> bool:
    """Whether a line without header is a row: it has commas, and a cell with an address or a UUID."""
    cells = [cell.strip() for cell in line.split(",")]
    return len(cells) > 1 and any(_ADDRESS.fullmatch(cell) or _UUID.fullmatch(cell) for cell in cells)


def is_read(line: str, section: Section) -> bool:
    """Whether a line of the table is its header, or a row that names its GPU, if a column does."""
    names, cells = _columns(section), _cells(line)
    if not names:
        return is_row(line)
    named = [cell for name, cell in zip(names, cells, strict=False) if name in _IDENTITY]
    is_named = any(cell.isdecimal() or _ADDRESS.fullmatch(cell) or _UUID.fullmatch(cell) for cell in named)
    return list(map(_bare, cells)) == names or (len(cells) == len(names) and (is_named or not named))


def _columns(section: Section) -> list[str]:
    """The fields of the table: its header, or what its command asks for; empty if neither is known."""
    first = next(filter(str.strip, section.lines), "")
    if is_header(first):
        return [_bare(name) for name in first.split(",")]
    asked = _FIELD.search(section.command or "")
    return asked["fields"].split(",") if asked else []


def _cells(line: str) -> list[str]:
    """The cells of one line: a quotation mark that is not closed must not swallow the rest."""
    return [cell.strip() for cell in next(csv.reader([line.replace("\r", " ")]), [])]


def parse(section: Section) -> Part:
    """The GPUs, one a row. A last line without line end may be incomplete, and is ignored."""
    lines = [line for line in (section.lines if section.whole else section.lines[:-1]) if line.strip()]
    names = _columns(section)
    rows = [_cells(line) for line in lines if is_read(line, section)]
    tables = [_named(row, names) for row in rows if list(map(_bare, row)) != names]
    driver, errors = read_all(_DRIVER, tables[0]) if tables else ({}, {})
    unread = [name for name in names if name not in _KNOWN and not _REASON.match(name) and not _HEALTH.match(name)]
    notes = (f"{section.file}: fields that are not read: {', '.join(unread)}",) if unread else ()
    gpus = tuple(map(_gpu, tables))
    if not _SELECTED.search(section.command or "") and not any(
        gpu.bus_id or gpu.uuid or gpu.index is not None for gpu in gpus
    ):
        gpus = tuple(replace(gpu, index=place) for place, gpu in enumerate(gpus))  # all GPUs, in order
    return section.part(driver=driver, driver_errors=errors, gpus=gpus, notes=notes)


def _bare(name: str) -> str:
    return name.partition("[")[0].strip()


def _named(row: Sequence[str], names: Sequence[str]) -> Mapping[str, str]:
    if names:
        return dict(zip(names, row, strict=True))
    found = {"index": row[0]} if row and row[0].isdecimal() and int(row[0]) < 128 else {}  # noqa: PLR2004 - more than any machine
    for cell in row:
        if _ADDRESS.fullmatch(cell):
            found["pci.bus_id"] = cell
        elif _UUID.fullmatch(cell):
            found["uuid"] = cell
        elif cell.startswith(("NVIDIA ", "Tesla ", "GeForce ", "Quadro ")):
            found["name"] = cell
    return found


def _gpu(row: Mapping[str, str]) -> GpuPart:
    row = {name: text.strip("[]") if text.startswith("[") else text for name, text in row.items()}
    facts, errors = read_all(_FIELDS, row)
    for field, read in _derived(row):
        try:
            facts.setdefault(field, read())
        except NotKnownError as error:
            errors.setdefault(field, str(error))
        except AbsentError:
            continue
    if _is_silent(row):
        errors["handle"] = "Unknown Error"
    uuid = row.get("uuid") or row.get("gpu_uuid") or ""
    return GpuPart(
        index=int(row["index"]) if row.get("index", "").isdecimal() else None,
        bus_id=sysfs_bus_id(row.get("pci.bus_id") or row.get("gpu_bus_id") or ""),
        uuid=uuid if _UUID.fullmatch(uuid) else None,
        facts=facts,
        errors=errors,
    )


def _derived(row: Mapping[str, str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The facts that several columns make up, with what reads them."""
    reasons = {f"clocks event reasons/{found[1].replace('_', ' ')}": text for found, text in _named_by(_REASON, row)}
    health = {f"fabric/health/{found[1].replace('_', ' ')}": text for found, text in _named_by(_HEALTH, row)}
    if reasons:
        yield "clock_event_reasons", partial(clock_event_reasons, reasons)
    if health:
        yield "fabric_problems", partial(fabric_problems, health)
    for scope in ("volatile", "aggregate"):
        yield f"ecc_uncorrected_{scope}", partial(_uncorrected, row, scope)


def _named_by(pattern: re.Pattern[str], row: Mapping[str, str]) -> list[tuple[re.Match[str], str]]:
    return [(found, text) for name, text in row.items() if (found := pattern.fullmatch(name))]


def _uncorrected(row: Mapping[str, str], scope: str) -> int:
    """The sum of the counters. If some are missing, it is a lower bound, and counts if it is above zero."""
    columns = ([row.get(f"{_UNCORRECTED}.{scope}.{name}", "") for name in names] for names in _PARTS)
    memory, sram, *by_code = [
        next((count for text in texts if (count := read_or_none(values.count, text)) is not None), None)
        for texts in columns
    ]
    if sram is None and None not in by_code:
        sram = sum(filter(None, by_code))
    known = [count for count in (memory, sram) if count is not None]
    if not known or (None in (memory, sram) and not sum(known)):
        raise AbsentError
    return sum(known)


def _is_silent(row: Mapping[str, str]) -> bool:
    """Whether nvidia-smi reports an unknown error in place of everything about this GPU."""
    read = [text for name, text in row.items() if name not in {"index", "count", "driver_version", "timestamp"}]
    return len(read) > 1 and all(text.strip().lower() == "unknown error" for text in read)
