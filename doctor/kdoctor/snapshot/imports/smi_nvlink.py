"""Reads ``nvidia-smi nvlink -s`` (each GPU's links) and ``nvidia-smi -L`` (the GPUs alone)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from kdoctor.facts import NvLink
from kdoctor.snapshot.imports import values
from kdoctor.snapshot.imports.part import CUT, GpuPart, Part, Section
from kdoctor.snapshot.imports.values import read_all

GPU = re.compile(r"GPU (?P<index>\d+): (?P<name>.+?) \(UUID: (?P<uuid>GPU-[0-9A-Fa-f-]{36})\)\s*")
_FIELDS: values.Fields = {"name": (values.free_text, ("name",))}
_LINK = re.compile(r"\s+Link (?P<index>\d+): (?P<state>.*?)\s*")
_SPEED = re.compile(r"(\d+(?:\.\d+)?) GB/s")
_INACTIVE = "all links are inactive"
_NONE = re.compile(r"does not have or support nvlink", re.IGNORECASE)
NOT_SUPPORTED = "NVML_ERROR_NOT_SUPPORTED"
"""What the live probe reports for a GPU without NVLink."""


def parse(section: Section) -> Part:
    """The links in ``nvlink -s``, the names and UUIDs in ``-L``."""
    lines = section.lines
    if not section.whole and not _is_complete(lines[-1]):
        lines = lines[:-1]
    starts = [place for place, line in enumerate(lines) if GPU.fullmatch(line)]
    blocks = [lines[start:end] for start, end in pairwise([*starts, len(lines)])]
    has_links = any(line.strip() and not GPU.fullmatch(line) for line in lines)
    parts = [_gpu(block, has_links=has_links) for block in blocks]
    if has_links and len(parts) > 1 and not section.ended:
        parts[-1] = _distrust(parts[-1], parts[:-1])
    return Part(kind="nvidia-smi nvlink -s" if has_links else "nvidia-smi -L", file=section.file, gpus=tuple(parts))


def _is_complete(line: str) -> bool:
    """Whether a last line without line end is complete all the same."""
    return line.endswith((" GB/s", "inactive", "<inactive>", ")")) or bool(_NONE.search(line))


def _gpu(lines: Sequence[str], *, has_links: bool) -> GpuPart:
    head = GPU.fullmatch(lines[0])
    if not head:
        raise ValueError(f"not the line of a GPU: {lines[0]}")
    facts, errors = read_all(_FIELDS, head.groupdict())
    facts["uuid"] = head["uuid"]
    if has_links:
        links, why = _links(lines[1:])
        if links is not None:
            facts["nvlinks"] = links
        if why is not None:
            errors["nvlinks"] = why
    return GpuPart(index=int(head["index"]), uuid=head["uuid"], facts=facts, errors=errors)


def _links(lines: Sequence[str]) -> tuple[tuple[NvLink, ...] | None, str | None]:
    """The links, and why they are not known."""
    text = " ".join(" ".join(lines).split())
    if _NONE.search(text):
        return None, NOT_SUPPORTED
    if _INACTIVE in text.lower():
        # The number of links is not shown. The first one is inactive.
        return (NvLink(index=0, active=False),), text
    found = [_link(match["index"], match["state"]) for match in map(_LINK.fullmatch, lines) if match]
    return (tuple(found), None) if found else (None, text[:120] or CUT)


def _link(index: str, state: str) -> NvLink:
    speed = _SPEED.fullmatch(state)
    if speed:
        return NvLink(index=int(index), active=True, speed_gbs=float(speed[1]))
    if state.lower().strip("<>") == "inactive":
        return NvLink(index=int(index), active=False)
    return NvLink(index=int(index), errors={"active": state or "empty"})


def _distrust(last: GpuPart, others: Sequence[GpuPart]) -> GpuPart:
    """The last GPU of a file. If it has fewer links than the others, some are cut off."""
    if len(last.facts.get("nvlinks", ())) >= max(len(other.facts.get("nvlinks", ())) for other in others):
        return last
    if last.errors.get("nvlinks") not in (None, CUT):
        return last
    facts = {field: value for field, value in last.facts.items() if field != "nvlinks"}
    return replace(last, facts=facts, errors={**last.errors, "nvlinks": CUT})
