"""Reads the matrices of ``nvidia-smi topo``: ``-m`` (levels, NVLinks, affinities) and ``-p2p`` (access)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kdoctor.probes.files import parse_list
from kdoctor.text.lists import counted
from kdoctor_recordings.formats.part import GpuPart, PairPart, Part, Section

_LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
_OLD_LEVELS = {"SOC": "SYS"}
"""Drivers before 387 write SOC for SYS."""
_P2P = ("OK", "CNS", "GNS", "TNS", "DR", "NS")
_GPU = re.compile(r"GPU(\d+)")
_NVLINK = re.compile(r"NV(\d+)")
_ROW = re.compile(r"\s*GPU(?P<index>\d+)(?P<before>(?:\s+(?:NV\d+|PIX|PXB|PHB|NODE|SYS|SOC))*)\s+X(?:\s+\S.*)?")
_TITLES = {"CPU Affinity": "cpu_affinity", "NUMA Affinity": "numa_affinity", "GPU NUMA ID": "gpu_numa_id"}
_CAPABILITY = re.compile(r"topo\s.*?-p2p[ =]*(?P<letters>[a-z]+)")
_ONLY_PCI = re.compile(r"topo\s.*-(?:mp\b|matrix_pci)")
_FIELDS = {"r": ("p2p_read",), "w": ("p2p_write",), "rw": ("p2p_read", "p2p_write"), "n": ("p2p_nvlink",)}


def begins_part(line: str) -> bool:
    """Whether the line is a row of ``topo -m``, whose header may be missing: the diagonal shows the columns."""
    found = _ROW.fullmatch(line)
    return found is not None and int(found["index"]) == len(found["before"].split())


def parse_levels(section: Section) -> Part:
    """``topo -m``: the levels or NVLinks of pairs, and each GPU's CPUs and NUMA nodes. ``-mp`` leaves out NVLinks."""
    read = _pci_level if _ONLY_PCI.search(section.command or "") else _level
    if is_part := begins_part(section.lines[0]):
        last = max(int(row["index"]) for row in map(_ROW.fullmatch, section.lines) if row)
        header = " ".join(f"GPU{index}" for index in range(last + 1))
        section = replace(section, lines=(header, *section.lines))
    gpus, titles = _header(section.lines[0])
    parts: list[GpuPart] = []
    pairs: dict[tuple[int, int], PairPart] = {}
    for index, cells, affinities in _rows(section, gpus):
        parts.append(_gpu(index, titles, affinities))
        pairs |= _pairs(index, gpus, cells, read)
    rows = {part.index for part in parts}
    cut = "" if len(rows) == len(gpus) else f"ends after {len(rows)} of {counted(len(gpus), 'row')}"
    note = "has no header, so there may be further GPUs" if is_part else cut
    parts += [GpuPart(index=index) for index in gpus if index not in rows]
    return section.part(
        driver={"count": len(gpus)} if gpus == list(range(len(gpus))) and not is_part else {},
        gpus=tuple(parts),
        pairs=pairs,
        notes=(f"{section.file}: the topology matrix {note}",) if note else (),
    )


def parse_access(section: Section) -> Part:
    """``topo -p2p``: the access of pairs. Only the command shows which capability it is."""
    gpus, _ = _header(section.lines[0])
    command = _CAPABILITY.search(section.command or "")
    fields = _FIELDS.get(command["letters"]) if command else ("p2p_read", "p2p_write")
    notes = () if command else (f"{section.file}: the matrix does not name the capability; assuming rw",)
    if fields is None:
        notes = (f"{section.file}: {section.command} is not supported, and was ignored",)
        return section.part(notes=notes)
    pairs: dict[tuple[int, int], PairPart] = {}
    for index, cells, _ in _rows(section, gpus):
        row = _pairs(index, gpus, cells, lambda cell: _access(cell, fields))
        # The matrix has both directions. If they differ, the one without access counts.
        pairs |= {key: pair for key, pair in row.items() if key not in pairs or "OK" in pairs[key].facts.values()}
    return section.part(gpus=tuple(GpuPart(index=index) for index in gpus), pairs=pairs, notes=notes)


def _header(line: str) -> tuple[list[int], list[str]]:
    """The indices of the GPUs, and the fields of the columns after the matrix."""
    titles = [_TITLES[name] for name in re.findall("|".join(_TITLES), line)]
    return [int(number) for number in _GPU.findall(line.partition("CPU Affinity")[0])], titles


def _rows(section: Section, gpus: Sequence[int]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Index, cells of the GPUs, and the columns after the matrix. Cells of other devices are left out."""
    header = section.lines[0].partition("CPU Affinity")[0].split()
    others = sum(1 for word in header if not _GPU.fullmatch(word))  # the network adapters and other devices
    for place, line in enumerate(section.lines[1:], start=1):
        columns = line.strip(" \t\"'`").split()
        name = _GPU.fullmatch(columns[0]) if columns else None
        if not name:
            continue
        cells = columns[1:]
        if place == len(section.lines) - 1 and not section.whole:
            cells = cells[:-1]  # the last cell may be incomplete: NV1 of NV18
        yield int(name[1]), cells[: len(gpus)], cells[len(gpus) + others :]


def _gpu(index: int, titles: Sequence[str], words: Sequence[str]) -> GpuPart:
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field, word in zip(titles, words, strict=False):
        if numbers := parse_list(word):
            facts[field] = numbers[0] if field == "gpu_numa_id" else numbers
        else:
            errors[field] = word
    return GpuPart(index=index, facts=facts, errors=errors)


def _pairs(index: int, gpus: Sequence[int], cells: Sequence[str], read: Any) -> dict[tuple[int, int], PairPart]:
    return {
        (min(index, other), max(index, other)): read(cell)
        for other, cell in zip(gpus, cells, strict=False)
        if other != index
    }


def _level(cell: str) -> PairPart:
    """A cell of ``-m``: a level, or the number of NVLinks."""
    link = _NVLINK.fullmatch(cell)
    if link:
        return PairPart(facts={"nvlinks": int(link[1])}, errors={"level": f"topo -m shows {cell} instead"})
    level = _OLD_LEVELS.get(cell, cell)
    if level in _LEVELS:
        return PairPart(facts={"level": level, "nvlinks": 0})
    return PairPart(errors={"level": cell, "nvlinks": cell})


def _pci_level(cell: str) -> PairPart:
    found = _level(cell)
    known = {"level": found.facts["level"]} if "level" in found.facts else {}
    return PairPart(facts=known, errors={**found.errors, "nvlinks": "topo -mp leaves out NVLinks"})


def _access(cell: str, fields: Sequence[str]) -> PairPart:
    shown = dict.fromkeys(fields, cell)
    return PairPart(facts=shown) if cell in _P2P else PairPart(errors=shown)
