"""Reads ``nvidia-smi nvlink -s`` (each GPU's links), ``-e`` (their counters) and ``nvidia-smi -L`` (the GPUs alone)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from kdoctor.facts import NvLink
from kdoctor.text.lists import some
from kdoctor_recordings.facts import Diagnostic, Diagnostics
from kdoctor_recordings.formats import values
from kdoctor_recordings.formats.part import CUT, GpuPart, Part, Section
from kdoctor_recordings.formats.values import read_all

GPU = re.compile(
    r"(?:GPU models and configuration: )?GPU (?P<index>\d+): "
    r"(?:(?P<name>.+?) \(UUID: (?:(?P<uuid>GPU-[0-9A-Fa-f-]{36})|[^()]*)\),?"
    r"|(?P<alone>(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN|[ABHLPTV]\d{1,3}\b)[\w ./+-]*))\s*"
)
"""A line of ``nvidia-smi -L``; the UUID may be left out, as in PyTorch's report of the environment."""
_VERSION = re.compile(r"Nvidia driver version: (?P<version>\d[\d.]+)\s*")
BEGINS = re.compile(rf"{GPU.pattern}|.*NvLink Link Status.*")
"""The first line of ``nvidia-smi nvlink``, or of ``dcgmi nvlink --link-status``."""
_STATUS_GPU = re.compile(r"\s*gpuId (?P<index>\d+):\s*")
_STATUS_ROW = re.compile(r"\s*(?P<states>[UDX_](?:\s+[UDX_])*)\s*")
_FIELDS: values.Fields = {"name": (values.free_text, ("name",))}
_LINK = re.compile(r"\s*Link (?P<index>\d+): (?P<state>.*?)\s*")
_COUNTER = re.compile(r"\s*Link (?P<index>\d+): (?P<name>[A-Z][\w ]+): (?P<value>\d+)\s*")
_PROPERTY = re.compile(r"\s*Link \d+(?:, |: .*: ).*")
"""What ``-e``, ``-c`` and ``-R`` print about a link. It is not the link's state."""
_FAULTS = re.compile(
    r"Re(?:play|covery) Errors|Link recovery (?:successful|failed) events"
    r"|(?:Malformed packet|Buffer overrun|Rx|Rx remote|Local link integrity) Errors"
)
"""The counters that are zero on a healthy link. DCGM's health check looks at these, and at the rate of CRC errors.

Source: https://github.com/NVIDIA/DCGM/blob/master/modules/health/DcgmHealthWatch.cpp
"""
_FAILED = "Link recovery failed events"
_LEFT_OUT = re.compile(r"\s*\[?(?:\.{3,}|…)\]?\s*")
"""What people write for lines that they left out."""
_MIG_DEVICE = re.compile(r"\s*MIG \S+\s+Device +\d+: .*")
_SPEED = re.compile(r"(\d+(?:\.\d+)?) GB/s")
_INACTIVE = "all links are inactive"
_NONE = re.compile(r"does not have or support nvlink", re.IGNORECASE)
NOT_SUPPORTED = "NVML_ERROR_NOT_SUPPORTED"
"""What the live probe reports for a GPU without NVLink."""


def parse(section: Section) -> Part:
    """The links in ``nvlink -s``, the counters in ``-e``, the names and UUIDs in ``-L``."""
    lines = section.lines
    if "Link Status" in lines[0]:
        return section.part(gpus=tuple(_by_status(lines)))
    # A last line without line end may be complete all the same.
    is_complete = lines[-1].endswith((" GB/s", "inactive", "<inactive>", ")")) or _NONE.search(lines[-1])
    if not (section.whole or is_complete):
        lines = lines[:-1]
    starts = [place for place, line in enumerate(lines) if GPU.fullmatch(line)]
    blocks = [lines[start:end] for start, end in pairwise([*starts, len(lines)])]
    has_links = any(map(_is_of_link, lines))
    version = next(filter(None, map(_VERSION.match, lines)), None)
    parts = [_gpu(block, has_links=has_links) for block in blocks]
    if has_links and len(parts) > 1 and not section.ended:
        parts[-1] = _distrust(parts[-1], parts[:-1])
    if parts and not has_links:
        after = [line for line in blocks[-1][1:] if line.strip() and not _MIG_DEVICE.fullmatch(line)]
        parts[-1] = replace(parts[-1], cut=any(map(_LEFT_OUT.fullmatch, lines)) or not (after or section.ended))
    results = tuple(result for block in blocks if (result := _faults(block)))
    return section.part(
        "nvidia-smi nvlink -s" if has_links else "nvidia-smi -L",
        gpus=tuple(parts),
        driver={"driver_version": version["version"]} if version else {},
        groups=(Diagnostics(results=results),) if results else (),
    )


def _by_status(lines: Sequence[str]) -> Iterator[GpuPart]:
    """The GPUs of ``dcgmi nvlink --link-status``: a letter for each link (up, down, disabled, not supported)."""
    for head, row in pairwise(lines):
        gpu, states = _STATUS_GPU.fullmatch(head), _STATUS_ROW.fullmatch(row)
        if gpu and states:
            links = tuple(
                NvLink(index=index, active=state == "U")
                for index, state in enumerate(states["states"].split())
                if state in "UD"
            )
            facts = {"nvlinks": links} if links else {}
            errors = {} if links else {"nvlinks": NOT_SUPPORTED}
            yield GpuPart(index=int(gpu["index"]), facts=facts, errors=errors)


def _is_of_link(line: str) -> bool:
    """Whether the line has the state of a link, or says why it has none."""
    return bool((_LINK.fullmatch(line) and not _PROPERTY.fullmatch(line)) or "nvlink" in line.lower())


def _faults(lines: Sequence[str]) -> Diagnostic | None:
    counters = [found for found in map(_COUNTER.fullmatch, lines) if found and _FAULTS.fullmatch(found["name"])]
    if not counters:
        return None
    faults = [f"link {found['index']}: {found['value']} {found['name']}" for found in counters if found["value"] != "0"]
    return Diagnostic(
        tool="nvidia-smi nvlink -e",
        test="error counters of NVLinks",
        subject=lines[0].partition(":")[0],
        status="fail" if any(fault.endswith(_FAILED) for fault in faults) else "warn" if faults else "pass",
        message=some(faults, 3) if faults else "",
    )


def _gpu(lines: Sequence[str], *, has_links: bool) -> GpuPart:
    head = GPU.fullmatch(lines[0])
    if not head:
        raise ValueError(f"not the line of a GPU: {lines[0]}")
    facts, errors = read_all(_FIELDS, {"name": head["name"] or head["alone"]})
    facts["uuid"] = head["uuid"]
    if any(map(_MIG_DEVICE.fullmatch, lines)):
        facts["mig_mode"] = True
    if has_links:
        links, why = (None, CUT) if any(map(_LEFT_OUT.fullmatch, lines)) else _links(lines[1:])
        if links is not None:
            facts["nvlinks"] = links
        if why is not None:
            errors["nvlinks"] = why
    return GpuPart(index=int(head["index"]), uuid=head["uuid"], facts=facts, errors=errors)


def _links(lines: Sequence[str]) -> tuple[tuple[NvLink, ...] | None, str | None]:
    text = " ".join(" ".join(lines).split())
    if _NONE.search(text):
        return None, NOT_SUPPORTED
    if _INACTIVE in text.lower():
        # The number of links is not shown. The first one is inactive.
        return (NvLink(index=0, active=False),), text
    states = [line for line in lines if not _PROPERTY.fullmatch(line)]
    found = [_link(match["index"], match["state"]) for match in map(_LINK.fullmatch, states) if match]
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
