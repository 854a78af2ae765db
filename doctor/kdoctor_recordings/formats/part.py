"""The content of one dump, before the dumps of a machine are joined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from kdoctor.facts import FactGroup
from kdoctor.records import record
from kdoctor_recordings.facts import UnreadLine

Kind = Literal[
    "nvidia-smi -q",
    "nvidia-smi -q -x",
    "nvidia-smi",
    "nvidia-smi topo -m",
    "nvidia-smi topo -p2p",
    "nvidia-smi nvlink -s",
    "nvidia-smi -L",
    "nvidia-smi --query-gpu",
    "nvidia-smi's failure",
    "lspci -vvv",
    "dcgmi diag",
    "dcgmi diag's table",
    "kernel log",
    "this text",
    "/proc/driver/nvidia/version",
    "lsmod",
]
"""A supported format."""

CUT = "not in this output, which may be cut off"
"""The reason for what is missing in a dump that does not end as a complete one does."""

_BUS_ID = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})\.(?P<function>[0-7])", re.IGNORECASE
)


def sysfs_bus_id(text: str) -> str | None:
    """``00000000:3B:00.0`` and ``3b:00.0`` as sysfs writes them, ``0000:3b:00.0``; None for any other text."""
    found = _BUS_ID.fullmatch(text.strip())
    if not found:
        return None
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function']}".lower()


@record
class Section:
    """The part of a file that is one dump."""

    kind: Kind
    file: str
    """The file's name, for messages."""
    lines: tuple[str, ...]
    """Without their line ends."""
    whole: bool
    """Whether the last line has its line end, or something follows. If not, the line may be incomplete."""
    ended: bool
    """Whether something follows the section, if only an empty line. If not, lines may be missing."""
    command: str | None = None
    """The command above it, if the file has one."""
    first: int = 1
    """Number of the first line in the file."""
    skipped: tuple[tuple[int, str], ...] = ()
    """The lines before the section that belong to no known output, with their numbers; of the last one, also those
    after it."""

    def part(self, kind: Kind | None = None, **fields: Any) -> Part:
        """What was read of it: fields of :class:`Part`. The kind is the section's unless it is given."""
        return Part(kind=kind or self.kind, file=self.file, **fields)


@record
class GpuPart:
    """One GPU in one dump."""

    index: int | None = None
    """nvidia-smi's index; None if the dump does not have it for certain."""
    bus_id: str | None = None
    """As sysfs writes it."""
    uuid: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`kdoctor.facts.Gpu` to their values."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Fields without a value in the dump, to what it shows instead."""
    cut: bool = False
    """Whether the file ends within this GPU."""
    not_understood: tuple[str, ...] = ()
    """Lines about it that kdoctor does not know."""


@record
class PairPart:
    """A pair of GPUs in one dump."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`kdoctor.facts.GpuPair` to their values."""
    errors: Mapping[str, str] = field(default_factory=dict)


@record
class Part:
    """The content of one dump."""

    kind: Kind
    file: str
    driver: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`kdoctor.facts.Gpus` to their values."""
    driver_errors: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[GpuPart, ...] = ()
    pairs: Mapping[tuple[int, int], PairPart] = field(default_factory=dict)
    """By the two indices, the smaller first."""
    groups: tuple[FactGroup, ...] = ()
    """Complete groups of facts."""
    kernel_version: str | None = None
    """Version of the kernel module, which nvidia-smi reports for driver 610 and later."""
    not_understood: tuple[str, ...] = ()
    """Lines that kdoctor does not know, apart from those of a GPU."""
    unread: tuple[UnreadLine, ...] = ()
    """Lines that belong to no known output."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
