from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KernelDriver
from kdoctor.model import Evidence, Finding, Outcome, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._driver import LOAD_UVM, MODULE_HIDDEN
from kdoctor_checks._gpus import DRIVER

_PATH = "/dev/nvidia-uvm"


@check("driver.unified-memory-node", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def unified_memory_node(kernel: KernelDriver) -> Iterator[Outcome]:
    """The device node /dev/nvidia-uvm exists.

    Why: every CUDA program opens it, but nvidia-smi does not. On a host with nvidia-modprobe, the first program
    creates it. In a container, the runtime must add it, or CUDA fails with "unknown error" or code 999.
    Remedy: load the module nvidia-uvm; start containers with the NVIDIA runtime.
    Sources:
        https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/user-guide.html
    """
    nodes = kernel.nodes
    if nodes is None:
        yield Unjudged(subject=_PATH, reason="/dev was not read")
    elif not kernel.loaded and not nodes:
        yield MODULE_HIDDEN
    elif any(node.path == _PATH for node in nodes):
        yield Evidence(subject=_PATH, observed="exists")
    else:
        yield Finding(
            subject=_PATH,
            observed=f"does not exist ({counted(len(nodes), 'other device node')} found)",
            brief="does not exist",
            expected="exists",
            remedy=LOAD_UVM,
            rollback=Rollback.to("unload the module", "sudo modprobe -r nvidia-uvm"),
        )
