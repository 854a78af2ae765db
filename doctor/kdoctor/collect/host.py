"""Reads the host or container: operating system, processors, memory, limits."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import psutil

from kdoctor.collect.files import read_quietly
from kdoctor.collect.probe import Collected, Context, Probe
from kdoctor.facts import Host, ResourceLimit

_LIMITS = ("as", "core", "data", "memlock", "nofile", "nproc", "stack")
"""Limits (``RLIMIT_...`` in lower case) that training jobs run into."""

# Words in a control group's path, and the container engine that puts them there.
_CGROUP_MARKS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
    ("garden", "garden"),
)


def collect(context: Context) -> Collected:
    """What can be read; a field that this system does not have is None."""
    total, available = _memory(context.root)
    shm_total, shm_free = _shared_memory(context.root)
    return {
        Host: Host(
            os=platform.system(),
            os_release=_os_release(context.root),
            kernel=platform.release() or None,
            machine=platform.machine() or None,
            libc=_libc(context.root),
            cpus=os.cpu_count(),
            cpu_affinity=_affinity(),
            memory_total_bytes=total,
            memory_available_bytes=available,
            shm_total_bytes=shm_total,
            shm_free_bytes=shm_free,
            container=container(context.root, context.environ),
            limits=_limits(),
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


def _affinity() -> tuple[int, ...] | None:
    if not hasattr(os, "sched_getaffinity"):
        return None
    return tuple(sorted(os.sched_getaffinity(0)))


def _memory(root: Path) -> tuple[int, int]:
    """Total and available bytes: the machine's, or less where a control group allows less."""
    machine = psutil.virtual_memory()
    limit, used = _cgroup_memory(root)
    if limit is None or limit >= machine.total:
        return machine.total, machine.available
    return limit, min(machine.available, max(0, limit - (used or 0)))


def _cgroup_memory(root: Path) -> tuple[int | None, int | None]:
    """Limit and use of this process' control group, as a container sees it (version 2, else version 1)."""
    folder = root / "sys/fs/cgroup"
    for limit, use in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        limit_text, use_text = read_quietly(folder / limit), read_quietly(folder / use)
        if limit_text and limit_text.isdigit():
            return int(limit_text), int(use_text) if use_text and use_text.isdigit() else None
    return None, None


def _shared_memory(root: Path) -> tuple[int | None, int | None]:
    """Total and free bytes of /dev/shm."""
    path = root / "dev/shm"
    if not hasattr(os, "statvfs"):
        return None, None
    try:
        status = os.statvfs(path)
    except OSError:
        return None, None
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def container(root: Path, environ: Mapping[str, str]) -> str | None:
    """The container engine, ``container`` for one that does not say, ``none``; None where it cannot be told."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    for marker, engine in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (root / marker).exists():
            return engine
    declared = read_quietly(root / "run/systemd/container") or environ.get("container")
    if declared:
        return declared
    groups = read_quietly(root / "proc/1/cgroup")
    for mark, engine in _CGROUP_MARKS:
        if groups and re.search(rf"(?:^|[/:.-]){mark}", groups, re.MULTILINE):
            return engine
    mounts = read_quietly(root / "proc/self/mountinfo")
    if mounts and re.search(r"^\d+ \d+ \S+ \S+ / .* - overlay ", mounts, re.MULTILINE):
        return "container"
    return "none" if groups and mounts else None


def _limits() -> tuple[ResourceLimit, ...]:
    try:
        import resource
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
