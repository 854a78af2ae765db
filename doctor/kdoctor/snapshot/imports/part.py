"""What one dump says, before the dumps of a machine are joined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kdoctor.facts import FactGroup

Kind = Literal[
    "nvidia-smi -q",
    "nvidia-smi -q -x",
    "nvidia-smi",
    "nvidia-smi topo -m",
    "nvidia-smi topo -p2p",
    "nvidia-smi nvlink -s",
    "nvidia-smi -L",
    "nvidia-smi's failure",
    "lspci -vvv",
    "lstopo",
    "kernel log",
    "/proc/driver/nvidia/version",
]
"""A form that is understood."""

CUT = "the file ends before it"
"""The reason of what a dump that was cut off does not say any more."""

_BUS_ID = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})\.(?P<function>[0-7])", re.IGNORECASE
)


def sysfs_bus_id(text: str) -> str | None:
    """``00000000:3B:00.0`` and ``3b:00.0`` in the form of sysfs, ``0000:3b:00.0``; None for any other text."""
    found = _BUS_ID.fullmatch(text.strip())
    if not found:
        return None
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function']}".lower()


@dataclass(frozen=True, kw_only=True)
class Section:
    """A piece of a file that is one dump."""

    kind: Kind
    file: str
    """The file's name, for messages."""
    lines: tuple[str, ...]
    """Without their line ends."""
    whole: bool
    """Whether the last line has its line end, or something follows; otherwise it may be cut in the middle."""
    ended: bool
    """Whether something follows the section, an empty line at least; otherwise lines may be missing."""
    command: str | None = None
    """The command that stands above it, where the file says so."""


@dataclass(frozen=True, kw_only=True)
class GpuPart:
    """What one dump says of one GPU."""

    index: int | None = None
    """nvidia-smi's index; None where the dump does not tell it for sure."""
    bus_id: str | None = None
    """In the form of sysfs."""
    uuid: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`kdoctor.facts.Gpu` to their values."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Fields that the dump names and does not give, and its own words."""
    cut: bool = False
    """Whether the file ends within it."""


@dataclass(frozen=True, kw_only=True)
class PairPart:
    """What one dump says of two GPUs."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`kdoctor.facts.GpuPair` to their values."""
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one dump says."""

    kind: Kind
    file: str
    driver: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`kdoctor.facts.Gpus` to their values."""
    driver_errors: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[GpuPart, ...] = ()
    pairs: Mapping[tuple[int, int], PairPart] = field(default_factory=dict)
    """By the two indices, the smaller first."""
    groups: tuple[FactGroup, ...] = ()
    """Whole groups of facts that it gives."""
    kernel_version: str | None = None
    """Version of the kernel module, where nvidia-smi names it (driver 610 and later)."""
    notes: tuple[str, ...] = ()
    """What the user should know of it."""
