"""Reads a kernel log from ``dmesg`` (also ``-T`` and ``--time-format iso``), ``journalctl -k`` or syslog."""

from __future__ import annotations

import re

from kdoctor.probes.kernel_log import parse_log
from kdoctor.snapshot.imports.part import Part, Section

START = re.compile(
    r"(?:kern\s*:\w+\s*: )?\[\s*\d+\.\d{6}\] "
    r"|\[\w{3} \w{3}\s+\d+ [\d:]{8} \d{4}\] "
    r"|\d+,\d+,\d+,[^;]*;"
    r"|\d{4}-\d\d-\d\dT\S+ (?:\S+ kernel: |.*(?:NVRM|nvidia|\bpci\b|ACPI|Linux version))"
    r"|\w{3}\s+\d+ [\d:]{8} \S+ kernel: "
    r"|NVRM: "
)
"""The start of a line that only the kernel writes. A date alone is not enough."""
_UNSURE = re.compile(r"S?Xid \([^)]*\): \d*$")
"""A line that may end in the middle of a code."""


def parse(section: Section) -> Part:
    """The events of the log."""
    lines = section.lines
    if not section.whole and _is_unsure(lines[-1]):
        lines = lines[:-1]
    return Part(kind="kernel log", file=section.file, groups=(parse_log(lines, source=section.file),))


def _is_unsure(line: str) -> bool:
    """Whether the rest of the line may change what it means."""
    events = parse_log([line], source="").events
    return bool(_UNSURE.search(line)) or any(event.kind == "unclassified" for event in events)
