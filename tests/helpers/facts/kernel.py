"""Builders of the kernel's facts: its nvidia module, its settings and its log."""

from typing import Any

from kdoctor.facts import DeviceNode, Kernel, KernelDriver, KernelLog, KernelLogEvent
from kdoctor.probes.kernel_log import parse_log
from kdoctor.testing import healthy


def node(path: str, *, readable: bool = True, writable: bool = True) -> DeviceNode:
    """A device node, by default accessible to everyone."""
    return DeviceNode(path=path, mode="0666" if readable and writable else "0660", readable=readable, writable=writable)


def kernel(n: int = 8, **changes: Any) -> KernelDriver:
    """A loaded nvidia module, with the device nodes of n GPUs."""
    paths = (*(f"/dev/nvidia{index}" for index in range(n)), "/dev/nvidia-uvm", "/dev/nvidiactl")
    return healthy(KernelDriver, **{"nodes": tuple(node(path) for path in paths), **changes})


def kernel_settings(**changes: Any) -> Kernel:
    """A kernel with the nvidia modules, no IOMMU, and the daemons of an NVSwitch machine."""
    return healthy(Kernel, **changes)


def log(*events: KernelLogEvent, **changes: Any) -> KernelLog:
    """A kernel log since the boot, by default without events."""
    return healthy(KernelLog, events=events, **changes)


def logged(*lines: str) -> KernelLog:
    """The facts that kdoctor reads from these lines."""
    return parse_log(lines, source="dmesg.txt", complete=True)
