"""Commands of apt and dnf for the NVIDIA driver and the CUDA libraries of the system.

Package names: NVIDIA's repositories (https://developer.download.nvidia.com/compute/cuda/) and Ubuntu's
(https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/).
"""

import re
from typing import Literal, TypeGuard

from packaging.version import Version

from kdoctor.commands.shell import quoted
from kdoctor.model import Rollback

Manager = Literal["apt", "dnf"]

NVIDIA_DEVICES = "grep -B2 PCI_ID=10DE: /sys/bus/pci/devices/*/uevent"
"""The NVIDIA devices on the PCI bus with their drivers, by the kernel. Needs no package, as ``lspci`` does."""

_SYSTEMS: dict[Manager, tuple[str, ...]] = {
    "apt": ("debian", "ubuntu"),
    "dnf": ("red hat", "rocky", "almalinux", "centos", "fedora", "oracle linux", "amazon linux"),
}
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)+")
_PIN_FILE = "/etc/apt/preferences.d/kdoctor-rollback"

_OF_TOOLKIT = {
    "cudart": "cuda-cudart", "cublas": "libcublas", "cublasLt": "libcublas", "cufft": "libcufft",
    "cusolver": "libcusolver", "cusparse": "libcusparse", "cupti": "cuda-cupti",
}  # fmt: skip
"""Library to its package of the CUDA toolkit, whose name ends in the toolkit's release: ``libcufft-12-5``."""


def manager_of(os_release: str | None) -> Manager | None:
    """The package manager of a Linux distribution; None if it is not known."""
    text = (os_release or "").lower()
    return next((manager for manager, names in _SYSTEMS.items() if any(name in text for name in names)), None)


def branch_of(driver: str) -> str:
    """The branch of a driver version: 580 for 580.105.08."""
    branch = driver.partition(".")[0]
    return branch if branch.isascii() and branch.isdigit() else "<branch>"


def is_version(text: str | None) -> TypeGuard[str]:
    """Whether the text is a dotted number, and so can be part of a package specification."""
    return text is not None and _VERSION.fullmatch(text) is not None


def upgrade_driver(least: str) -> tuple[str, ...]:
    """Ubuntu's commands for a driver of that version's branch."""
    return (f"sudo apt-get install {quoted(f'nvidia-driver-{branch_of(least)}')}", "sudo reboot")


def previous_driver(version: str, then: str = "sudo reboot") -> Rollback:
    """The rollback to the recorded driver, with Ubuntu's package names; ``then`` is the command after it."""
    package = quoted(f"nvidia-driver-{branch_of(version)}={version}-*")
    install = f"sudo apt-get install --allow-downgrades {package}"
    return Rollback.to(f"reinstall driver {version} (Ubuntu packages)", install, then)


def restore_driver(manager: Manager, version: str, *, is_open: bool, now: str | None) -> tuple[str, ...]:
    """The commands that install exactly that driver version.

    A driver is a dozen packages of one version. For apt, a preference above 1000 (apt_preferences(5)) downgrades all
    of them together, and holds them until the file is removed.

    Args:
        manager: the package manager of the distribution.
        version: the version to restore.
        is_open: whether to install the open kernel modules.
        now: the installed version, if it is known.
    """
    if manager == "apt":
        lines = ("Package: *nvidia*", f"Pin: version {version}*", "Pin-Priority: 1001")
        return (
            f"printf '%s\\n' {quoted(*lines)} | sudo tee {_PIN_FILE}",
            "sudo apt-get update",
            f"sudo apt-get install --allow-downgrades nvidia-driver-{branch_of(version)}{'-open' if is_open else ''}",
        )
    kernel = "kmod-nvidia-open-dkms" if is_open else "kmod-nvidia-latest-dkms"
    verb = "downgrade" if now and Version(now) > Version(version) else "install"
    return (f"sudo dnf {verb} {quoted(f'nvidia-driver*-{version}*', f'{kernel}-{version}*')}",)


def restore_library(manager: Manager, library: str, version: str, cuda: str | None) -> tuple[str, str] | None:
    """The commands that install and verify that version of a CUDA library; None if its package is not known.

    Args:
        manager: the package manager of the distribution.
        library: kdoctor's name of it: ``cudnn``, ``cufft``.
        version: the version to restore.
        cuda: the version of the CUDA runtime next to it.
    """
    release = cuda.split(".") if cuda is not None and is_version(cuda) else None
    name: str | None = None
    if library == "nccl":
        name = "libnccl2" if manager == "apt" else "libnccl"
    elif library == "cudnn" and release:
        name = f"libcudnn{version.partition('.')[0]}-cuda-{release[0]}"
    elif library in _OF_TOOLKIT and release:
        name = f"{_OF_TOOLKIT[library]}-{release[0]}-{release[1]}"
    if name is None or not is_version(version):
        return None
    if manager == "apt":
        install = f"sudo apt-get install --allow-downgrades {quoted(f'{name}={version}*')}"
        return install, f"dpkg-query -W {name} | grep -F {version}"
    return f"sudo dnf install --allowerasing {quoted(f'{name}-{version}*')}", f"rpm -q {name} | grep -F {version}"
