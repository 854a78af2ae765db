"""The host or container that the job will run on."""

from typing import Annotated, ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.bounds import POSITIVE, AtMost, Identity
from kdoctor.records import record


@record
class ResourceLimit:
    """A process limit (``ulimit``). None means unlimited."""

    name: Annotated[str, Identity()]
    """``memlock``, ``nofile``, ..."""
    soft: int | None
    hard: int | None


@record
class NumaNode:
    """One NUMA node. A node without processors is memory only, such as GPU memory on POWER9 and Grace."""

    index: Annotated[int, Identity()]
    cpus: tuple[int, ...]
    memory_total_bytes: Annotated[int | None, POSITIVE] = None
    socket: int | None = None
    """Physical package of its processors (``physical_package_id``); None without processors."""


@record
class Disk:
    """The file system of a folder that a job writes to."""

    folder: Annotated[Literal["working folder", "temporary folder"], Identity()]
    total_bytes: int
    free_bytes: Annotated[int, AtMost("total_bytes")]
    """Bytes that this user can still write."""


@record
class Host(FactGroup):
    """Operating system, processors, memory and limits as seen by this process."""

    group: ClassVar[str] = "host"

    os: str
    """``Linux``, ``Darwin``, ``Windows``."""
    os_release: str | None = None
    """The distribution's name, for example ``Debian GNU/Linux 12 (bookworm)``."""
    kernel: str | None = None
    machine: str | None = None
    """``x86_64``, ``aarch64``."""
    libc: str | None = None
    """``glibc 2.36``, ``musl``."""
    cpus: Annotated[int | None, POSITIVE] = None
    """Logical processors of the machine."""
    cpu_affinity: tuple[int, ...] | None = None
    """Processors that this process may run on."""
    memory_total_bytes: Annotated[int | None, POSITIVE] = None
    memory_available_bytes: Annotated[int | None, AtMost("memory_total_bytes")] = None
    shm_total_bytes: int | None = None
    """Size of /dev/shm."""
    shm_free_bytes: Annotated[int | None, AtMost("shm_total_bytes")] = None
    container: str | None = None
    """``docker``, ``podman``, ``kubernetes``, ...; ``none`` on a bare host; None if unknown."""
    image: str | None = None
    """The image that this container was started from; None if nothing reports it."""
    image_from: str | None = None
    """The source of ``image``: ``KDOCTOR_IMAGE``, ``/run/.containerenv``, ``APPTAINER_CONTAINER``, ..."""
    limits: tuple[ResourceLimit, ...] = ()
    cpu_limit: Annotated[float | None, POSITIVE] = None
    """CPU limit of the control groups, in processors; equal to ``cpus`` without a limit, None if unknown."""
    memory_nodes: tuple[int, ...] | None = None
    """NUMA nodes whose memory this process may use (``Mems_allowed_list``)."""
    numa_nodes: tuple[NumaNode, ...] | None = None
    """In order of index."""
    swap_total_bytes: int | None = None
    swap_used_bytes: Annotated[int | None, AtMost("swap_total_bytes")] = None
    cpu_governors: tuple[str, ...] | None = None
    """Frequency governors of this process's processors, sorted; empty if the kernel does not scale frequencies (as in
    virtual machines)."""
    transparent_hugepages: Literal["always", "madvise", "never"] | None = None
    disks: tuple[Disk, ...] = ()

    @property
    def in_wsl(self) -> bool:
        """Whether this is Windows Subsystem for Linux, whose kernels name Microsoft and whose driver is Windows'."""
        return "microsoft" in (self.kernel or "").lower()

    def limit(self, name: str) -> ResourceLimit | None:
        """The limit of that name (``memlock``), or None."""
        return next((limit for limit in self.limits if limit.name == name), None)
