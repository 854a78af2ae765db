"""The NVIDIA kernel module and its device nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup


@dataclass(frozen=True, kw_only=True)
class DeviceNode:
    """A file through which user space reaches the driver."""

    path: str
    mode: str
    """Permission bits in octal: ``0666``."""
    readable: bool
    """Whether this process may read it."""
    writable: bool
    """Whether this process may write it."""


@dataclass(frozen=True, kw_only=True)
class KernelDriver(FactGroup):
    """What the kernel says of the NVIDIA driver."""

    group: ClassVar[str] = "kernel_driver"

    loaded: bool
    """Whether the nvidia module is loaded."""
    version: str | None = None
    """The module's version, from /proc/driver/nvidia/version or /sys/module/nvidia/version."""
    flavour: Literal["open", "proprietary"] | None = None
    """Which of NVIDIA's two kernel modules it is."""
    nodes: tuple[DeviceNode, ...] = ()
    """/dev/nvidia*, in order of path."""
