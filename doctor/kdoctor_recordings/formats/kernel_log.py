"""Reads a kernel log: dmesg, journalctl, syslog or pstore, in any of their forms, also quoted in a mail."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from kdoctor.probes.kernel_log import LogReader, parse_log
from kdoctor_recordings.formats.part import Part, Section

_UNSURE = re.compile(r"S?Xid \([^)]*\): \d*$")
"""A line that may end in the middle of a code."""
_LONG_BYTES = 4 * 1024**2
_BLOCK_BYTES = 64 * 1024
"""A block fits into the processor's cache."""


def read_long(path: Path, is_log: Callable[[bytes], bool]) -> Part | None:
    """The events of a long log, read block by block in constant memory.

    Args:
        path: a file.
        is_log: whether the first block of a file is part of a kernel log and nothing else.

    Returns:
        None if the file is short, or is not a kernel log alone.
    """
    if not os.path.isfile(path) or path.stat().st_size < _LONG_BYTES:  # noqa: PTH113 - it never raises
        return None
    reader = LogReader()
    with path.open("rb") as file:
        block = file.read(_BLOCK_BYTES)
        if not is_log(block):
            return None
        while block:
            block += file.readline(_LONG_BYTES)
            if not block.endswith(b"\n") and _is_unsure(block.decode("utf-8", "replace").rpartition("\n")[2]):
                block = block[: block.rfind(b"\n") + 1]
            reader.read_block(block)
            block = file.read(_BLOCK_BYTES)
    return None if reader.is_mixed else Part(kind="kernel log", file=path.name, groups=(reader.log(source=path.name),))


def parse(section: Section) -> Part:
    """The events of the log."""
    lines = section.lines
    if not section.whole and _is_unsure(lines[-1]):
        lines = lines[:-1]
    return section.part(groups=(parse_log(lines, source=section.file),))


def _is_unsure(line: str) -> bool:
    """Whether the rest of the line may change what it means."""
    events = parse_log([line], source="").events
    return bool(_UNSURE.search(line)) or any(event.kind == "unclassified" for event in events)
