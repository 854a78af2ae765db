"""Builder of the group ``host``."""

from typing import Any

from helpers.facts.base import GIB
from helpers.facts.gpus import near
from kdoctor.facts import Disk, Host, NumaNode, ResourceLimit


def host(**changes: Any) -> Host:
    """A bare Linux host with half its memory as /dev/shm."""
    values: dict[str, Any] = {
        "os": "Linux",
        "os_release": "Ubuntu 24.04.2 LTS",
        "kernel": "6.8.0-60-generic",
        "machine": "x86_64",
        "libc": "glibc 2.39",
        "cpus": 224,
        "cpu_affinity": tuple(range(224)),
        "memory_total_bytes": 2048 * GIB,
        "memory_available_bytes": 1990 * GIB,
        "shm_total_bytes": 1024 * GIB,
        "shm_free_bytes": 1024 * GIB,
        "container": "none",
        "limits": (
            *(ResourceLimit(name=name, soft=None, hard=None) for name in ("cpu", "fsize", "memlock")),
            ResourceLimit(name="nofile", soft=65536, hard=1048576),
        ),
        "cpu_limit": 224.0,
        "memory_nodes": (0, 1),
        "numa_nodes": tuple(NumaNode(index=node, cpus=near(4 * node), socket=node) for node in range(2)),
        "swap_total_bytes": 8 * GIB,
        "swap_used_bytes": 0,
        "cpu_governors": ("performance",),
        "transparent_hugepages": "madvise",
        "disks": (
            Disk(folder="working folder", total_bytes=1000 * GIB, free_bytes=500 * GIB),
            Disk(folder="temporary folder", total_bytes=100 * GIB, free_bytes=50 * GIB),
        ),
    }
    return Host(**{**values, **changes})
