"""Shared by checks of the driver: its device nodes, its module, and containers with it."""

import re
from collections.abc import Iterable

from kdoctor.commands.shell import quoted
from kdoctor.facts import Host, Unavailable
from kdoctor.model import NotApplicable, Remedy, Rollback

NODE = re.compile(r"/dev/nvidia(\d+|ctl|-uvm)")
"""The device nodes that CUDA opens. Others (caps, modeset) have different purposes."""


def create_nodes(minors: Iterable[int]) -> str:
    """The command that creates the nodes of GPUs with these minor numbers, and the one of unified memory."""
    return " ".join(("sudo nvidia-modprobe", *(f"-c {minor}" for minor in sorted(set(minors))), "-u"))


MODULE_HIDDEN = NotApplicable(reason="neither the nvidia module nor its nodes are visible here (as under WSL)")
LOAD_UVM = Remedy.configure(
    "Load the module and create the node with nvidia-modprobe. Start containers with the NVIDIA runtime.",
    "sudo modprobe nvidia-uvm",
    "sudo nvidia-modprobe -u",
    look=("ls -l /dev/nvidia*",),
)
WITHOUT_GPU = Remedy.configure(
    "If lspci lists an NVIDIA GPU, install the driver branch that supports it, and keep other drivers from it. If not, "
    "look for it in the BIOS and in its slot.",
    look=("lspci -nnk -d 10de:", "sudo dmesg | grep -i nvrm"),
)


def blacklisted(driver: str, summary: str) -> tuple[Remedy, Rollback]:
    """How to keep a kernel driver from binding GPUs, and how to undo it."""
    file, apply = quoted(f"/etc/modprobe.d/blacklist-{driver}.conf"), ("sudo update-initramfs -u", "sudo reboot")
    lines = f"echo {quoted(f'blacklist {driver}')}"
    if driver == "nouveau":
        lines = r"printf 'blacklist nouveau\noptions nouveau modeset=0\n'"
    remedy = Remedy.reboot(summary, f"{lines} | sudo tee {file}", *apply)
    return remedy, Rollback.to(f"allow {driver} again", f"sudo rm {file}", *apply)


def with_runtime(host: Host | Unavailable) -> str:
    """Docker's command with the NVIDIA runtime, for this container's image if it is known."""
    image = quoted((host.image if isinstance(host, Host) else None) or "<image>")
    return f"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility {image} '<command>'"
