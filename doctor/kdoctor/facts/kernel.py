"""The NVIDIA kernel module and its device nodes, the kernel's own settings, and what its log says of GPUs."""

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
    nodes: tuple[DeviceNode, ...] | None = ()
    """/dev/nvidia*, in order of path; None where /dev was not looked at (a snapshot made of dumps)."""


@dataclass(frozen=True, kw_only=True)
class Kernel(FactGroup):
    """Settings of the kernel, and programs beside the driver, that decide whether GPUs work together."""

    group: ClassVar[str] = "kernel"

    modules: tuple[str, ...] | None = None
    """Loaded modules that matter to GPUs, of ``nvidia*`` and ``nouveau``, in order of name."""
    secure_boot: bool | None = None
    """Whether the firmware enforces signatures (EFI variable ``SecureBoot``)."""
    lockdown: Literal["none", "integrity", "confidentiality"] | None = None
    """The kernel's lockdown, which refuses unsigned modules."""
    iommu_parameters: tuple[str, ...] | None = None
    """Parameters of the kernel's command line about the IOMMU and ACS: ``intel_iommu=on``, ``iommu=pt``,
    ``pcie_acs_override=...``; in their order."""
    iommu_groups: int | None = None
    """Number of IOMMU groups; 0 where no IOMMU is in use."""
    daemons: tuple[str, ...] | None = None
    """NVIDIA's daemons that run here (``nv-fabricmanager``, ``nvidia-persistenced``, ``nvidia-imex``,
    ``nvidia-cuda-mps-control``); in a container the host's are not seen."""

    @property
    def nouveau_loaded(self) -> bool | None:
        """Whether the free driver, which bars NVIDIA's, is loaded; None where the modules could not be listed."""
        return None if self.modules is None else "nouveau" in self.modules


KernelLogKind = Literal[
    "xid",
    "sxid",
    "fallen-off-the-bus",
    "iommu-fault",
    "init-failed",
    "gsp-failed",
    "hmm-failed",
    "version-mismatch",
    "module-rejected",
    "pcie-error",
]
"""What a line tells: an Xid of a GPU; an SXid of an NVSwitch; a GPU that no longer answers on PCIe; a transfer that
the IOMMU blocked; a GPU that could not be initialised (``RmInitAdapter``); its firmware processor failed; memory could
not be shared (``request_free_mem_region``); user space and kernel module differ; the module was refused (signature,
Secure Boot); an error of PCIe's own reporting (AER)."""


@dataclass(frozen=True, kw_only=True)
class KernelLogEvent:
    """One line of the kernel's log that tells of a GPU, or of what it needs."""

    kind: KernelLogKind
    text: str
    """The line without its time stamp and priority."""
    bus_id: str | None = None
    """The device that it names, as ``0000:3b:00.0``; None where it names none."""
    code: int | None = None
    """Number of an Xid or SXid."""
    recovery: str | None = None
    """For Xid 154: the action that the driver asks for, in its words."""
    boot_s: float | None = None
    """Seconds since boot, where the line says so."""
    time: str | None = None
    """Date and time, as the log writes them, where it does."""


@dataclass(frozen=True, kw_only=True)
class KernelLog(FactGroup):
    """What the kernel's log says of GPUs. Often it may not be read: then the group is unavailable."""

    group: ClassVar[str] = "kernel_log"

    source: str
    """Where it was read: ``/dev/kmsg``, or the file's name."""
    lines: int
    """Number of lines that were read."""
    complete: bool | None = None
    """Whether it reaches back to the boot; None where that cannot be told."""
    events: tuple[KernelLogEvent, ...] = ()
    """In the log's order."""
