"""The host or container that the job will run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kdoctor.facts.base import FactGroup


@dataclass(frozen=True, kw_only=True)
class ResourceLimit:
    """A process limit (``ulimit``). None means unlimited."""

    name: str
    """``memlock``, ``nofile``, ..."""
    soft: int | None
    hard: int | None


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
    limits: tuple[ResourceLimit, ...] = ()
