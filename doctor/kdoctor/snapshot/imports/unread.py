"""Finds the lines of a dump that no parser reads, so that none is dropped silently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kdoctor.facts.imported import ImportedLines, UnreadLine
from kdoctor.snapshot.imports import smi_failure
from kdoctor.snapshot.imports.part import Kind, Section

MOST = 200
"""Lines that are kept, and characters of a line."""

_WORD = re.compile(r"\w")
_FRAME = re.compile(
    r"\s*(?:\w{3} \w{3}\s+\d+ [\d:]{8}(?: \w+)? \d{4}|\w{3} \d{1,2} \w{3} \d{4} .*|nvidia-smi(?: -.*)?"
    r"|Failed to properly shut down NVML: Driver Not Loaded|\*\*\* .*"
    r"|/[\w./-]+/(?:nvidia-smi|lspci|dmesg|journalctl)\b.*)\s*"
)
"""The time above a table, as nvidia-smi and date write it, a command alone, what follows a reported failure, and the
titles in a bug report.
"""
_LEGEND = r"\s*(?:NIC )?Legend:\s*|\s+\S+\s+= .*|\s*NIC\d+: \S+\s*"
_PATTERNS: dict[Kind, str] = {
    # A row of the GPUs has three columns. Gpus.not_understood lists those that are not known.
    "nvidia-smi": (
        r"\|(?:[^|]*\|){3,}\s*|\|\s*NVIDIA-SMI .*|\|\s*(?:Processes|MIG devices):.*|\|\s*GPU\s.*\bPID\b.*"
        r"|\|\s*(?:ID\s+ID|PID ID|No running processes found|Usage)\b.*"
        r"|\|\s*\d+\s+(?:(?:N/A|\d+)\s+){0,2}\d+\s+[CGM+]+\s.*\|\s*"
    ),
    "nvidia-smi topo -m": (r"\s*GPU\d+\b.*|\S+(?:\s+(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|N/A|[\d,-]+))+\s*|" + _LEGEND),
    "nvidia-smi topo -p2p": r"\s*GPU\d+\b.*|" + _LEGEND,
    "nvidia-smi nvlink -s": (
        r"GPU \d+: .*|\s+Link \d+: .*|.*(?:links are inactive|not have or support nvlink).*|\s+MIG .*"
    ),
    "lspci -vvv": (
        r"\s.*|(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] .*|[0-9a-f]{2,3}: .*"
        r"|(?:Slot|Class|S?Vendor|S?Device|PhySlot|Rev|ProgIf|Driver|Module|NUMANode|IOMMUGroup|DTNode|Label):\s.*"
    ),
    "/proc/driver/nvidia/version": r"(?:NVRM|GCC) version:.*",
}
_READ = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}
"""The lines of each kind that are read, or that are known to report no fault."""
_ENDS: dict[Kind, str] = {
    "nvidia-smi -q -x": "</nvidia_smi_log>",
    "lstopo": "</topology>",
    "NCCL topology": "</system>",
}
"""The closing tags of XML. What follows is not read."""


def unread_lines(section: Section) -> tuple[UnreadLine, ...]:
    """The lines before and in a section that were not read."""
    own = enumerate(section.lines, start=section.first)
    if section.kind in _ENDS:
        found = _after(section, _ENDS[section.kind])
    elif section.kind == "nvidia-smi's failure":
        found = _after_message(section)
    elif section.kind == "nvidia-smi --query-gpu":
        commas = section.lines[0].count(",")
        found = ((number, line) for number, line in own if line.count(",") < commas)
    elif pattern := _READ.get(section.kind):
        found = (item for item in own if not pattern.fullmatch(item[1]) and not smi_failure.is_about_gpu(item[1]))
    else:
        found = iter(())
    return tuple(
        UnreadLine(file=section.file, line=number, text=_shown(line))
        for number, line in (*section.skipped, *found)
        if _WORD.search(line) and not _FRAME.fullmatch(line)
    )


def collected(lines: Iterable[UnreadLine]) -> ImportedLines | None:
    """The group of facts; None without such lines."""
    found = tuple(lines)
    return ImportedLines(count=len(found), lines=found[:MOST]) if found else None


def _after(section: Section, tag: str) -> Iterator[tuple[int, str]]:
    """What follows the closing tag, if the document has it."""
    ends = [place for place, line in enumerate(section.lines) if tag in line]
    start = ends[0] + 1 if ends else len(section.lines)
    return enumerate(section.lines[start:], start=section.first + start)


def _after_message(section: Section) -> Iterator[tuple[int, str]]:
    """What follows the message of nvidia-smi, which ends with an empty line."""
    lost = any(map(smi_failure.LOST.match, section.lines))
    is_message = True
    for number, line in enumerate(section.lines, start=section.first):
        is_message = is_message and bool(line.strip())
        if not (smi_failure.LOST.match(line) if lost else is_message):
            yield number, line


def _shown(line: str) -> str:
    """The line without what a terminal would act on."""
    return "".join(letter if letter.isprintable() else " " for letter in line.strip()[:MOST])
