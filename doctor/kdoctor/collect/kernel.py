"""Reads the NVIDIA kernel module from /proc and /sys, and its device nodes from /dev."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Literal

from kdoctor.collect.files import read_text, reason
from kdoctor.collect.probe import Collected, Context, Probe
from kdoctor.facts import DeviceNode, KernelDriver, Unavailable

# "NVIDIA UNIX x86_64 Kernel Module  580.173.02  ..." and
# "NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build ..."
_VERSION = re.compile(r"NVRM version:.*?(?P<open>\bOpen )?Kernel Module(?: for \S+)?\s+(?P<version>\d+(?:\.\d+)+)")


def collect(context: Context) -> Collected:
    """Whether the module is loaded, which one, and who may use its device nodes."""
    if not (context.root / "proc").is_dir() and not (context.root / "sys/module").is_dir():
        why = "this system has no /proc and no /sys/module"
        return {KernelDriver: Unavailable(unavailable=why)}
    try:
        return {KernelDriver: _read(context.root)}
    except OSError as error:
        return {KernelDriver: Unavailable(unavailable=f"the NVIDIA kernel module cannot be read: {reason(error)}")}


def _read(root: Path) -> KernelDriver:
    text = read_text(root / "proc/driver/nvidia/version")
    module = root / "sys/module/nvidia"
    loaded = text is not None or module.is_dir()
    version, flavour = parse_version(text or "")
    return KernelDriver(
        loaded=loaded,
        version=version or read_text(module / "version") or None,
        flavour=flavour,
        nodes=_read_nodes(root),
    )


def parse_version(text: str) -> tuple[str | None, Literal["open", "proprietary"] | None]:
    """Version and flavour from the text of ``/proc/driver/nvidia/version``; None where it does not say."""
    found = _VERSION.search(text)
    if not found:
        return None, None
    return found["version"], "open" if found["open"] else "proprietary"


def _read_nodes(root: Path) -> tuple[DeviceNode, ...]:
    """The device nodes; none where there is no /dev."""
    folder = root / "dev"
    if not folder.is_dir():
        return ()
    nodes = (_read_node(path) for path in sorted(folder.glob("nvidia*")))
    return tuple(node for node in nodes if node)


def _read_node(path: Path) -> DeviceNode | None:
    """One node; None for a folder (nvidia-caps) and for what vanished in the meantime."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        return None
    return DeviceNode(
        path=f"/dev/{path.name}",
        mode=f"{stat.S_IMODE(mode):04o}",
        readable=os.access(path, os.R_OK),
        writable=os.access(path, os.W_OK),
    )


PROBE = Probe(name="kernel driver", provides=(KernelDriver,), collect=collect, deadline_s=10)
