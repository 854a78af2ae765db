"""Reads the NVIDIA kernel module, its device nodes, and kernel settings that GPUs depend on."""

import os
import re
import stat
from pathlib import Path
from typing import Literal

from kdoctor.facts import DeviceNode, Facts, Kernel, KernelDriver, Unavailable
from kdoctor.probes.files import chosen_word, read_quietly, read_text, reason
from kdoctor.probes.probe import Context, Probe

# "NVIDIA UNIX x86_64 Kernel Module  580.173.02  ..." and
# "NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build ..."
_VERSION = re.compile(r"NVRM version:.*?(?P<open>\bOpen )?Kernel Module(?: for \S+)?\s+(?P<version>\d+(?:\.\d+)+)")

_SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The EFI variable: four bytes of attributes, then 1 if signatures are enforced (UEFI specification, 3.3)."""

_IOMMU_NAMES = ("iommu", "intel_iommu", "amd_iommu", "pcie_acs_override", "pci")
_DAEMONS = (
    ("nv-fabricmanage", "nv-fabricmanager"),
    ("nvidia-persiste", "nvidia-persistenced"),
    ("nvidia-imex", "nvidia-imex"),
    ("nvidia-cuda-mps", "nvidia-cuda-mps-control"),
)
"""Names as truncated in /proc/<pid>/comm (15 characters), and in full."""
_LOCKDOWNS: dict[str | None, Literal["none", "integrity", "confidentiality"]]
_LOCKDOWNS = {"none": "none", "integrity": "integrity", "confidentiality": "confidentiality"}


def collect(context: Context) -> Facts:
    """The kernel module, its device nodes, and the kernel's settings."""
    if not (context.root / "proc").is_dir() and not (context.root / "sys/module").is_dir():
        missing = Unavailable(unavailable="this system has neither /proc nor /sys/module")
        return {KernelDriver: missing, Kernel: missing}
    try:
        driver: KernelDriver | Unavailable = _read(context.root)
    except OSError as error:
        driver = Unavailable(unavailable=f"the NVIDIA kernel module cannot be read: {reason(error)}")
    return {KernelDriver: driver, Kernel: _read_kernel(context.root)}


def _read_kernel(root: Path) -> Kernel:
    command_line = read_quietly(root / "proc/cmdline")
    return Kernel(
        modules=_modules(root),
        secure_boot=_secure_boot(root),
        lockdown=_LOCKDOWNS.get(chosen_word(read_quietly(root / "sys/kernel/security/lockdown"))),
        iommu_parameters=None if command_line is None else tuple(filter(_is_about_iommu, command_line.split())),
        iommu_groups=_count(root / "sys/kernel/iommu_groups") if (root / "sys/kernel").is_dir() else None,
        daemons=_daemons(root),
    )


def _modules(root: Path) -> tuple[str, ...] | None:
    text = read_quietly(root / "proc/modules")
    if text is None:
        return None
    names = (line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip())
    return tuple(sorted(name for name in names if name.startswith("nvidia") or name == "nouveau"))


def _secure_boot(root: Path) -> bool | None:
    """Whether Secure Boot is on; false on a machine without EFI. Containers hide /sys/firmware."""
    try:
        return (root / _SECURE_BOOT).read_bytes()[4:5] == b"\x01"
    except FileNotFoundError:
        return False if _count(root / "sys/firmware") and not (root / "sys/firmware/efi").exists() else None
    except OSError:
        return None


def _is_about_iommu(parameter: str) -> bool:
    name = parameter.partition("=")[0]
    return name in _IOMMU_NAMES or name.startswith(("iommu.", "arm-smmu"))


def _count(folder: Path) -> int:
    """Number of entries of a folder; 0 if it does not exist."""
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return 0


def _daemons(root: Path) -> tuple[str, ...] | None:
    try:
        folders = [entry for entry in (root / "proc").iterdir() if entry.name.isdecimal()]
    except OSError:
        return None
    names = {read_quietly(folder / "comm") for folder in folders}
    if not names - {None}:
        return None
    return tuple(full for short, full in _DAEMONS if any(name and name.startswith(short) for name in names))


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
    """Version and flavour from the text of ``/proc/driver/nvidia/version``; None if it has none."""
    found = _VERSION.search(text)
    if not found:
        return None, None
    return found["version"], "open" if found["open"] else "proprietary"


def _read_nodes(root: Path) -> tuple[DeviceNode, ...]:
    folder = root / "dev"
    if not folder.is_dir():
        return ()
    nodes = (_read_node(path) for path in sorted(folder.glob("nvidia*")))
    return tuple(node for node in nodes if node)


def _read_node(path: Path) -> DeviceNode | None:
    """One node; None for a folder (nvidia-caps), or if it vanished in the meantime."""
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


PROBE = Probe(name="kernel driver", provides=(KernelDriver, Kernel), collect=collect, deadline_s=10)
