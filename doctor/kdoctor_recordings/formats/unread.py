"""Finds the lines of a dump that no parser reads, so that none is dropped silently."""

import re
from collections.abc import Iterable, Iterator, Sequence

from kdoctor_recordings.facts import ImportedLines, UnreadLine
from kdoctor_recordings.formats import dcgm_table, diagnostics, messages, smi_csv, smi_query, smi_table, smi_xml
from kdoctor_recordings.formats.part import Kind, Section
from kdoctor_recordings.formats.smi_failure import LOST, is_about_gpu

MOST = 200
"""Lines that are kept, and characters of a line."""

_WORD = re.compile(r"\w")
_FRAME = re.compile(
    r"\s*(?:\w{3} \w{3}\s+\d+ [\d:]{8}(?: \w+)? \d{4}|\w{3} \d{1,2} \w{3} \d{4} .*|nvidia-smi(?: -.*)?"
    r"|Failed to properly shut down NVML: Driver Not Loaded|Successfully ran diagnostic for group\.|\*\*\* .*"
    r"|/[\w./-]+/(?:nvidia-smi|lspci|dmesg|journalctl)\b.*)\s*"
)
"""The time above a table, as nvidia-smi and date write it, a command alone, what follows a reported failure, and the
titles in a bug report.
"""

_LEGEND = r"\s*(?:NIC )?Legend:\s*|\s*\S+\s+= .*|\s*NIC\d+: \S+\s*"
_PATTERNS: dict[Kind, str] = {
    # Gpus.not_understood lists the rows of the GPUs that are not known.
    "nvidia-smi": (
        r"\|?\s*(?:NVIDIA-SMI|NVITOP) .*|\s*\[? ?(?:CPU|MEM|Load Average): .*"
        r"|\|\s*(?:Processes|MIG devices|\w+ instances):.*|\|\s*(?:GPU\s+(?:Name|GI|PID|GPU)|Fan\s+Temp)\b.*"
        r"|\|[\s|]*(?:MIG M\.|ECC)[\s|]*|\|\s*GPU\s.*\bPID\b.*"
        r"|\|\s*(?:ID\s+(?:ID|\|)|Instance\s+ID|PID ID|No running processes found|No MIG devices found|Usage).*"
        r"|\|\s*\d[\d\s]*MIG \d.*|\|(?:[\d\s/|]|MiB|N/A)*|\|\s*\d+\s+(?:(?:N/A|\d+)\s+){0,2}\d+\s+[CGM+]+\s.*\|\s*"
    ),
    "nvidia-smi topo -m": (r"\s*GPU\d+\b.*|\S+(?:\s+(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|N/A|[\d,-]+))+\s*|" + _LEGEND),
    "nvidia-smi topo -p2p": r"\s*GPU\d+\b.*|" + _LEGEND,
    "nvidia-smi nvlink -s": (
        r"(?:GPU models and configuration: )?GPU \d+: .*|\s*Link \d+: (?!Remote Device).*|\s*MIG .*"
        r"|.*(?:links are inactive|not have or support nvlink).*"
        r"|.*NvLink Link Status.*|(?:GPUs|NvSwitches):|\s*gpuId \d+:\s*|\s*[UDX_](?:\s+[UDX_])*\s*|Key: .*"
        r"|\s*No NvSwitch.*"
    ),
    "lspci -vvv": (
        r"\s+(?!.*(?:fail(?!over)|(?<!de)fault|corrupt|damage)).*|Lnk(?:Cap|Sta)\d?:.*"
        r"|(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] .*|[0-9a-f]{2,3}: .*"
        r"|(?:Slot|Class|S?Vendor|S?Device|PhySlot|Rev|ProgIf|Driver|Module|NUMANode|IOMMUGroup|DTNode|Label):\s.*"
    ),
    "lsmod": r"\w+\s+\d+\s+-?\d+(?:\s.*)?|Module +Size.*",
    "/proc/driver/nvidia/version": r"(?:NVRM|GCC) version:.*",
    "dcgmi diag's table": dcgm_table.ROW.pattern,
}
_READ = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}
"""The lines of each kind that are read, or that are known to report no fault."""


def unread_lines(section: Section) -> tuple[UnreadLine, ...]:
    """The lines before, in and after a section that were not read."""
    lines = list(enumerate(section.lines, start=section.first))
    is_xml = section.kind == "nvidia-smi -q -x"
    length = next((place for place, line in enumerate(section.lines, 1) if is_xml and smi_xml.END in line), len(lines))
    # What a terminal would act on is not shown.
    return tuple(
        UnreadLine(
            file=section.file, line=number, text="".join(c if c.isprintable() else " " for c in line.strip()[:MOST])
        )
        for number, line in (*section.skipped, *_unread(section, lines[:length]), *lines[length:])
        if _WORD.search(line) and not _FRAME.fullmatch(line) and not messages.is_read(line)
    )


def _unread(section: Section, lines: Sequence[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    """The lines of a section that were not read, or those parts of them."""
    if section.kind == "nvidia-smi -q":
        return smi_query.prose(lines)
    if section.kind == "nvidia-smi's failure":
        return _after_message(section)
    if section.kind == "nvidia-smi --query-gpu":
        return (item for item in lines if not smi_csv.is_read(item[1], section))
    if section.kind == "dcgmi diag":
        return ((number, text) for number, line in lines for text in diagnostics.unknown(line))
    pattern = _READ.get(section.kind)
    rows = smi_table.rows(section.lines) if section.kind == "nvidia-smi" else range(0)
    return (
        (number, line)
        for number, line in lines
        if pattern and not (pattern.fullmatch(line) or is_about_gpu(line))
        if not (line.rstrip().endswith("|") and number - section.first in rows)
    )


def collected(lines: Iterable[UnreadLine]) -> ImportedLines | None:
    """The group of facts; None without such lines."""
    found = tuple(lines)
    return ImportedLines(count=len(found), lines=found[:MOST]) if found else None


def _after_message(section: Section) -> Iterator[tuple[int, str]]:
    """What follows the message of nvidia-smi, which ends with an empty line."""
    lost = any(map(LOST.match, section.lines))
    is_message = True
    for number, line in enumerate(section.lines, start=section.first):
        is_message = is_message and bool(line.strip())
        if not (LOST.match(line) if lost else is_message):
            yield number, line
