"""GPUs as the driver's management library (NVML) reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup

TopologyLevel = Literal["internal", "PIX", "PXB", "PHB", "NODE", "SYS"]
"""How far apart two GPUs are, nearest first: one board, one PCIe switch, several switches, one host
bridge, one NUMA node, across the sockets. The words are ``nvidia-smi topo -m``'s."""


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    """Process id, in the process namespace of the driver."""
    used_memory_bytes: int | None
    """Memory held; None where the driver does not say."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU. A field that could not be read is None, and its NVML error stands in ``errors``."""

    index: int
    """NVML's index, which is nvidia-smi's."""
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    """PCI address in sysfs form: ``0000:3b:00.0``."""
    compute_capability: str | None = None
    """``major.minor``."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    """Compute processes; an empty tuple means that the driver reported none."""
    pcie_generation: int | None = None
    """Current link generation; it drops while a GPU is idle."""
    pcie_generation_max: int | None = None
    """Highest generation that GPU and slot can both do."""
    pcie_width: int | None = None
    """Current number of lanes."""
    pcie_width_max: int | None = None
    """Lanes that GPU and slot can both do."""
    performance_state: int | None = None
    """P-state: 0 is the fastest, 8 and above idle."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the NVML error that its call returned."""

    @property
    def subject(self) -> str:
        """The GPU's name in reports: index and bus id."""
        return f"GPU {self.index} ({self.bus_id})" if self.bus_id else f"GPU {self.index}"


@dataclass(frozen=True, kw_only=True)
class GpuPair:
    """The nearest common ancestor of two GPUs."""

    first: int
    second: int
    level: TopologyLevel | None
    """None where the driver did not say."""
    error: str | None = None
    """The NVML error's name, where ``level`` is None."""

    @property
    def subject(self) -> str:
        """The pair's name in reports."""
        return f"GPU {self.first} - GPU {self.second}"


NvmlState = Literal["ready", "library-absent", "driver-not-loaded", "library-mismatch", "no-permission", "failed"]


@dataclass(frozen=True, kw_only=True)
class Gpus(FactGroup):
    """The driver and its GPUs, through NVML."""

    group: ClassVar[str] = "gpus"

    state: NvmlState
    """Whether NVML could be initialised, and if not, why."""
    error: str | None = None
    """NVML's or the loader's own words, where ``state`` is not ``ready``."""
    driver_version: str | None = None
    """Version of the driver's user-space library."""
    cuda_driver_version: str | None = None
    """Highest CUDA release that the driver supports, ``major.minor``; not the toolkit's version."""
    count: int | None = None
    """NVML's device count; more than ``len(devices)`` where a GPU could not be opened."""
    devices: tuple[Gpu, ...] = ()
    """In order of index; a GPU that could not be opened has only its index and its errors."""
    pairs: tuple[GpuPair, ...] = ()
    """Each unordered pair once."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Errors of calls that concern no single GPU: field name to the error's name."""
