"""The host or container that the job will run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup


@dataclass(frozen=True, kw_only=True)
class ResourceLimit:
    """A process limit (``ulimit``). None means unlimited."""

    name: str
    """``memlock``, ``nofile``, ..."""
    soft: int | None
    hard: int | None


@dataclass(frozen=True, kw_only=True)
class NumaNode:
    """One NUMA node. A node without processors is memory alone: POWER9 and Grace show GPUs' memory so."""

    index: int
    cpus: tuple[int, ...]
    memory_total_bytes: int | None = None
    socket: int | None = None
    """Physical package of its processors (``physical_package_id``); None without processors."""


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The file system of a folder that a job writes to."""

    folder: Literal["working folder", "temporary folder"]
    total_bytes: int
    free_bytes: int
    """What this user may still write."""


@dataclass(frozen=True, kw_only=True)
class Host(FactGroup):
    """Operating system, processors, memory and limits, as this process sees them."""

    group: ClassVar[str] = "host"

    os: str
    """``Linux``, ``Darwin``, ``Windows``."""
    os_release: str | None = None
    """The distribution's own name, for example ``Debian GNU/Linux 12 (bookworm)``."""
    kernel: str | None = None
    machine: str | None = None
    """``x86_64``, ``aarch64``."""
    libc: str | None = None
    """``glibc 2.36``, ``musl``."""
    cpus: int | None = None
    """Logical processors of the machine."""
    cpu_affinity: tuple[int, ...] | None = None
    """Processors that this process may run on."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    shm_total_bytes: int | None = None
    """Size of /dev/shm."""
    shm_free_bytes: int | None = None
    container: str | None = None
    """``docker``, ``podman``, ``kubernetes``, ...; ``none`` on a bare host; None where it cannot be told."""
    image: str | None = None
    """The image that this container was started from, by the name that something here says; None where nothing does."""
    image_from: str | None = None
    """Who says so: ``KDOCTOR_IMAGE``, ``/run/.containerenv``, ``APPTAINER_CONTAINER``, ..."""
    limits: tuple[ResourceLimit, ...] = ()
    cpu_limit: float | None = None
    """Processors' worth of time that the control groups allow this process; ``cpus`` where they set no limit, None
    where that could not be read."""
    memory_nodes: tuple[int, ...] | None = None
    """NUMA nodes that this process may take memory from (``Mems_allowed_list``)."""
    numa_nodes: tuple[NumaNode, ...] | None = None
    """In order of index."""
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    cpu_governors: tuple[str, ...] | None = None
    """Frequency governors of this process' processors, each once, in order of name; empty where the kernel does not
    scale frequencies (as in virtual machines)."""
    transparent_hugepages: Literal["always", "madvise", "never"] | None = None
    disks: tuple[Disk, ...] = ()

    def limit(self, name: str) -> ResourceLimit | None:
        """The limit of that name (``memlock``), or None."""
        return next((limit for limit in self.limits if limit.name == name), None)
