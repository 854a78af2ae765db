"""Reads the host or container: operating system, processors, memory, limits."""

import os
import platform
import re
import shlex
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import psutil

from kdoctor.facts import Disk, Facts, Host, NumaNode, ResourceLimit
from kdoctor.probes.container import container, container_image
from kdoctor.probes.files import chosen_word, parse_int, parse_list, parse_mask, read_int, read_list, read_quietly
from kdoctor.probes.probe import Context, Probe

_LIMITS = ("as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack")
"""Limits (``RLIMIT_...`` in lower case) that matter to training jobs."""

_HUGEPAGES = "sys/kernel/mm/transparent_hugepage/enabled"
_PAGES: dict[str | None, Literal["always", "madvise", "never"]]
_PAGES = {"always": "always", "madvise": "madvise", "never": "never"}
_DISK_WAIT_S = 2.0
"""How long file systems may take. An unavailable network file system hangs, which must not block the other facts."""


def collect(context: Context) -> Facts:
    """Everything that can be read; fields that do not exist on this system are None."""
    root = context.root
    total, available = _memory(root)
    affinity = _affinity(root)
    cpus = _cpus(root)
    swap_total, swap_used = _swap(root)
    shm_total, shm_free = _shared_memory(context.root)
    image, image_from = container_image(context.root, context.environ)
    return {
        Host: Host(
            os=platform.system(),
            os_release=_os_release(context.root),
            kernel=platform.release() or None,
            machine=platform.machine() or None,
            libc=_libc(context.root),
            cpus=cpus,
            cpu_affinity=affinity,
            memory_total_bytes=total,
            memory_available_bytes=available,
            shm_total_bytes=shm_total,
            shm_free_bytes=shm_free,
            container=container(context.root, context.environ),
            image=image,
            image_from=image_from,
            limits=_limits(),
            cpu_limit=_cpu_limit(root, cpus),
            memory_nodes=parse_list(_status(root).get("Mems_allowed_list", "-")),
            numa_nodes=_numa_nodes(root),
            swap_total_bytes=swap_total,
            swap_used_bytes=swap_used,
            cpu_governors=_governors(root, affinity),
            transparent_hugepages=_PAGES.get(chosen_word(read_quietly(root / _HUGEPAGES))),
            disks=_disks(context.environ),
        )
    }


def _os_release(root: Path) -> str | None:
    for path in (root / "etc/os-release", root / "usr/lib/os-release"):
        for line in (read_quietly(path) or "").splitlines():
            if line.startswith("PRETTY_NAME="):
                return _unquote(line.partition("=")[2])
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return None if platform.system() == "Linux" else platform.version() or None


def _unquote(text: str) -> str | None:
    try:
        return " ".join(shlex.split(text)) or None
    except ValueError:
        return text or None


def _libc(root: Path) -> str | None:
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        name = None
    if name:
        return name
    return "musl" if any((root / "lib").glob("ld-musl-*")) else None


def _cpus(root: Path) -> int | None:
    online = read_list(root / "sys/devices/system/cpu/online")
    return len(online) if online else os.cpu_count()


def _affinity(root: Path) -> tuple[int, ...] | None:
    """Processors that this process may run on; below another root, from that root's /proc/self."""
    if root != Path("/"):
        listed = parse_list(_status(root).get("Cpus_allowed_list", "-"))
        if listed:
            return listed
    if not hasattr(os, "sched_getaffinity"):
        return None
    return tuple(sorted(os.sched_getaffinity(0)))


def _status(root: Path) -> dict[str, str]:
    lines = (read_quietly(root / "proc/self/status") or "").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _meminfo(path: Path) -> dict[str, int]:
    """Bytes by name, from /proc/meminfo or a NUMA node's (whose lines begin with ``Node 0``)."""
    found = re.findall(r"^(?:Node \d+ )?(\w+):\s+(\d+) kB$", read_quietly(path) or "", re.MULTILINE)
    return {name: int(number) * 1024 for name, number in found}


def _memory(root: Path) -> tuple[int, int]:
    """Total and available bytes of the machine, or of the control group if that is less."""
    found = _meminfo(root / "proc/meminfo")
    if "MemTotal" in found and "MemAvailable" in found:
        total, available = found["MemTotal"], found["MemAvailable"]
    else:
        machine = psutil.virtual_memory()
        total, available = machine.total, machine.available
    limit, used = _cgroup_memory(root)
    if limit is None or limit >= total:
        return total, available
    return limit, min(available, max(0, limit - (used or 0)))


def _swap(root: Path) -> tuple[int | None, int | None]:
    found = _meminfo(root / "proc/meminfo")
    if "SwapTotal" not in found or "SwapFree" not in found:
        return None, None
    return found["SwapTotal"], found["SwapTotal"] - found["SwapFree"]


def _cpu_limit(root: Path, cpus: int | None) -> float | None:
    """The CPU limit of this process's control groups, in processors; all processors without a limit."""
    groups = read_quietly(root / "proc/self/cgroup")
    if groups is None or not (root / "sys/fs/cgroup").is_dir() or cpus is None:
        return None
    limits = [float(cpus)]
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", "", "/")
        if not controllers or "cpu" in controllers.split(","):
            folder = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
            limits += _quotas(folder, Path(path.strip("/")))
    return min(limits)


def _quotas(folder: Path, group: Path) -> list[float]:
    """The limits of a group and its parents. In a container its path may be the host's, which does not exist here."""
    found: list[float] = []
    for place in (group, *group.parents):
        text = read_quietly(folder / place / "cpu.max")
        if text is None:
            quota, period = (read_int(folder / place / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
            text = f"{quota} {period}"
        match = re.fullmatch(r"(\d+) ([1-9]\d*)", text)
        if match:
            found.append(int(match[1]) / int(match[2]))
    return found


def _numa_nodes(root: Path) -> tuple[NumaNode, ...] | None:
    folders = {}
    with suppress(OSError):  # a sandbox may show the folder and refuse to list it
        for path in (root / "sys/devices/system/node").glob("node*"):
            number = path.name.removeprefix("node")
            if number.isdecimal():
                folders[int(number)] = path
    return tuple(_numa_node(root, index, folders[index]) for index in sorted(folders)) or None


def _numa_node(root: Path, index: int, folder: Path) -> NumaNode:
    cpus = read_list(folder / "cpulist")
    if cpus is None:
        cpus = parse_mask(read_quietly(folder / "cpumap") or "") or ()
    socket = read_int(root / f"sys/devices/system/cpu/cpu{cpus[0]}/topology/physical_package_id") if cpus else None
    return NumaNode(
        index=index,
        cpus=cpus,
        memory_total_bytes=_meminfo(folder / "meminfo").get("MemTotal"),
        socket=socket if socket is not None and socket >= 0 else None,
    )


def _governors(root: Path, affinity: tuple[int, ...] | None) -> tuple[str, ...] | None:
    """The governors of these processors; empty if the kernel does not scale their frequency."""
    folder = root / "sys/devices/system/cpu"
    if affinity is None or not folder.is_dir():
        return None
    found = (read_quietly(folder / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in affinity)
    return tuple(sorted({governor for governor in found if governor}))


def _disks(environ: Mapping[str, str]) -> tuple[Disk, ...]:
    """The file systems of the working and the temporary folder, except those that hang."""
    found: list[Disk] = []
    thread = threading.Thread(target=_read_disks, args=(environ, found), daemon=True)
    thread.start()
    thread.join(timeout=_DISK_WAIT_S)
    return tuple(found)


def _read_disks(environ: Mapping[str, str], found: list[Disk]) -> None:
    with suppress(OSError):
        found.append(_disk("working folder", "."))
    with suppress(OSError):
        found.append(_disk("temporary folder", _temporary_folder(environ)))


def _disk(folder: Literal["working folder", "temporary folder"], path: str) -> Disk:
    usage = psutil.disk_usage(path)
    return Disk(folder=folder, total_bytes=usage.total, free_bytes=usage.free)


def _temporary_folder(environ: Mapping[str, str]) -> str:
    """The folder for the job's temporary files.

    Raises:
        OSError: no folder is writable, as in a container with a read-only file system.
    """
    return next((environ[name] for name in ("TMPDIR", "TEMP", "TMP") if environ.get(name)), "") or tempfile.gettempdir()


def _cgroup_memory(root: Path) -> tuple[int | None, int | None]:
    """Limit and usage of this process's control group, as seen in a container (version 2, else version 1)."""
    folder = root / "sys/fs/cgroup"
    for limit, use in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        limit_text, use_text = read_quietly(folder / limit), read_quietly(folder / use)
        limit_bytes = parse_int(limit_text or "")
        if limit_bytes is not None:
            return limit_bytes, parse_int(use_text or "")
    return None, None


def _shared_memory(root: Path) -> tuple[int | None, int | None]:
    path = root / "dev/shm"
    if not hasattr(os, "statvfs"):
        return None, None
    try:
        status = os.statvfs(path)
    except OSError:
        return None, None
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def _limits() -> tuple[ResourceLimit, ...]:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return ()
    limits: list[ResourceLimit] = []
    for name in _LIMITS:
        number = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if number is not None:
            soft, hard = (None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(number))
            limits.append(ResourceLimit(name=name, soft=soft, hard=hard))
    return tuple(limits)


PROBE = Probe(name="host", provides=(Host,), collect=collect, deadline_s=10)
