import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Host, Kernel, KernelDriver, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_fleet.checks.network._rdma import NO_RDMA, hca_list, ports
from kdoctor_fleet.facts import Network

_PEERMEM = "nvidia_peermem"
_FIRST_KERNEL = (5, 12)
_SUBJECT = "GPUDirect RDMA"


@check("network.gpudirect", severity=Severity.WARNING, needs_gpus=True)
def gpudirect(
    network: Network, kernel: Kernel, driver: KernelDriver, host: Host, environment: Environment | Unavailable
) -> Iterator[Outcome]:
    """The kernel lets RDMA devices read GPU memory directly.

    Why: without GPUDirect RDMA, NCCL copies every message through host memory, which takes about half of the bandwidth.
    It needs the module nvidia-peermem, or DMA-BUF: the open kernel modules of the driver on Linux 5.12 or later. Jobs
    on one machine do not use it, so this is a warning. EFA has its own way in its driver and is not judged.
    Remedy: load nvidia-peermem, or install the open kernel modules.
    Sources:
        https://docs.nvidia.com/cuda/gpudirect-rdma/
        https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
    """
    if not network.rdma:
        yield NO_RDMA
        return
    used = [one for one in ports(network, hca_list(environment)) if one.active and one.device.driver != "efa"]
    if not used:
        yield NotApplicable(reason="no InfiniBand or RoCE port that the job may use is active")
        return
    release = re.match(r"(\d+)\.(\d+)", host.kernel or "")
    if kernel.modules is not None and _PEERMEM in kernel.modules:
        yield Evidence(subject=_SUBJECT, observed="nvidia-peermem is loaded", brief="GPUDirect RDMA")
    elif driver.flavour is None or release is None or kernel.modules is None:
        yield Unjudged(
            subject=_SUBJECT, reason="the kernel's modules, its release or the driver's flavor were not read"
        )
    elif driver.flavour == "open" and (int(release[1]), int(release[2])) >= _FIRST_KERNEL:
        modules = f"open kernel modules {driver.version}" if driver.version else "open kernel modules"
        observed = f"DMA-BUF: {modules} on Linux {release[0]}"
        yield Evidence(subject=_SUBJECT, observed=observed, brief="GPUDirect RDMA")
    else:
        yield _finding(f"nvidia-peermem is not loaded; {driver.flavour} kernel modules on Linux {release[0]}")


def _finding(observed: str) -> Finding:
    return Finding(
        subject=_SUBJECT,
        observed=observed,
        brief="RDMA devices cannot read GPU memory",
        expected="nvidia-peermem, or open kernel modules on Linux 5.12 or later",
        remedy=Remedy.configure(
            "Load nvidia-peermem, now and at every start.",
            "sudo modprobe nvidia-peermem",
            "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf",
        ),
        rollback=Rollback.to(
            "unload the module", "sudo rm /etc/modules-load.d/nvidia-peermem.conf", "sudo modprobe -r nvidia-peermem"
        ),
    )
