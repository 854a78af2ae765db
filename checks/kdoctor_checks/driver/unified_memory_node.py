"""Whether CUDA's device node is there."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelDriver
from kdoctor.model import (
    Action,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Unjudged,
)

_PATH = "/dev/nvidia-uvm"


@check(
    "driver.unified-memory-node", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"]
)
def unified_memory_node(kernel: KernelDriver) -> Iterator[Outcome]:
    """The device node /dev/nvidia-uvm is there.

    Why: every CUDA program opens it, while nvidia-smi does without. On a host it is made when the first program asks
    for it, where nvidia-modprobe is installed; in a container it must be brought in, or CUDA fails with "unknown
    error" or code 999.
    Remedy: load the module nvidia-uvm; in a container, start it with the NVIDIA runtime.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/user-guide.html
    """
    nodes = kernel.nodes
    if nodes is None:
        yield Unjudged(subject=_PATH, reason="/dev was not looked at")
    elif not kernel.loaded and not nodes:
        yield NotApplicable(reason="the nvidia module is not seen from here, nor its nodes (as under WSL)")
    elif any(node.path == _PATH for node in nodes):
        yield Evidence(subject=_PATH, observed="it is there")
    else:
        yield Finding(
            subject=_PATH,
            observed=f"not among the {len(nodes)} device nodes",
            expected="it is there",
            remedy=Remedy(
                summary="Load the module and let NVIDIA's own tool make the node; in a container, start it with the "
                "NVIDIA runtime.",
                action=Action.CONFIGURE,
                commands=("sudo modprobe nvidia-uvm", "sudo nvidia-modprobe -c 0 -u"),
            ),
            rollback=Rollback.to("the module not loaded, as recorded", "sudo modprobe -r nvidia-uvm"),
        )
