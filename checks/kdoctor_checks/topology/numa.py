"""Whether the process may run, and take its memory, near its GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, Host, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import answering


@check("topology.numa", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def numa(gpus: Gpus, host: Host, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """This process may run on processors near each GPU, and take memory there.

    Why: a process that is bound to the processors or the memory of the other socket sends every batch and every kernel
    launch across the link between the sockets.
    Remedy: start the job without that binding, or bind it to the GPU's NUMA node.
    Sources:
        https://docs.pytorch.org/docs/main/elastic/numa.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://man7.org/linux/man-pages/man7/cpuset.7.html
    """
    nodes = [node for node in host.numa_nodes or () if node.cpus]
    if len(nodes) == 1:
        yield NotApplicable(reason="the machine has one NUMA node")
        return
    for gpu in answering(gpus):
        near = _near(gpu, pci)
        if near is None:
            error = gpu.errors.get("cpu_affinity", "no reason given")
            yield Unjudged(subject=gpu.subject, reason=f"which processors are near it is not told ({error})")
        elif host.cpu_affinity is None:
            yield Unjudged(subject=gpu.subject, reason="the processors of this process were not read")
        elif not near & set(host.cpu_affinity):
            yield _finding(gpu, host.cpu_affinity, near)
        else:
            yield _memory(gpu, host, near, len(near & set(host.cpu_affinity)))


def _near(gpu: Gpu, pci: PciDevices | Unavailable) -> set[int] | None:
    device = pci.find(gpu.bus_id) if isinstance(pci, PciDevices) else None
    found = gpu.cpu_affinity or (device.local_cpus if device else None)
    return set(found) if found else None


def _memory(gpu: Gpu, host: Host, near: set[int], shared: int) -> Outcome:
    """What is to be said of the memory, where the processors are as they should be."""
    nodes = {node.index for node in host.numa_nodes or () if near & set(node.cpus)} or set(gpu.numa_affinity or ())
    if host.memory_nodes is None or not nodes:
        return Unjudged(subject=gpu.subject, reason="whose memory this process may take was not read")
    listed = ", ".join(map(str, sorted(nodes)))
    if nodes & set(host.memory_nodes):
        observed = f"{shared} of the {len(near)} processors near it are ours, and memory of its NUMA node {listed}"
        return Evidence(subject=gpu.subject, observed=observed)
    allowed = ", ".join(map(str, host.memory_nodes)) or "none"
    return Finding(
        subject=gpu.subject,
        observed=f"this process may take memory from NUMA node {allowed} only, and the GPU is near node {listed}",
        expected="memory of a node near each GPU",
        remedy=Remedy(
            summary="Let whoever starts the job (Slurm, Kubernetes, the container's --cpuset-mems) allow that node.",
            action=Action.CONFIGURE,
            commands=("grep Mems_allowed_list /proc/self/status", "numactl --hardware"),
        ),
        rollback=Rollback.nothing("a binding ends with the process"),
    )


def _finding(gpu: Gpu, ours: tuple[int, ...], near: set[int]) -> Finding:
    node = gpu.numa_affinity[0] if gpu.numa_affinity else "<node>"
    return Finding(
        subject=gpu.subject,
        observed=f"none of the {len(ours)} processors of this process is among the {len(near)} near the GPU",
        expected="a processor near each GPU",
        remedy=Remedy(
            summary="Start the job without that binding, or bind it to the GPU's NUMA node.",
            action=Action.CONFIGURE,
            commands=("nvidia-smi topo -m", "taskset -pc $$", f"numactl --cpunodebind={node} '<command>'"),
        ),
        rollback=Rollback.nothing("a binding ends with the process"),
    )
