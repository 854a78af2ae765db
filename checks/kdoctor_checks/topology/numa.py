"""Whether the process may run near its GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, Host, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import answering


@check("topology.numa", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def numa(gpus: Gpus, host: Host, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """This process may run on processors that are near each GPU.

    Why: a process that is bound to the processors of the other socket sends every batch and every kernel launch
    across the link between the sockets, and its memory is there, too.
    Remedy: start the job without that binding, or bind it to the GPU's NUMA node.
    Sources:
        https://docs.pytorch.org/docs/main/elastic/numa.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
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
        elif near & set(host.cpu_affinity):
            shared = len(near & set(host.cpu_affinity))
            yield Evidence(subject=gpu.subject, observed=f"{shared} of the {len(near)} processors near it are ours")
        else:
            yield _finding(gpu, host.cpu_affinity, near)


def _near(gpu: Gpu, pci: PciDevices | Unavailable) -> set[int] | None:
    device = pci.find(gpu.bus_id) if isinstance(pci, PciDevices) else None
    found = gpu.cpu_affinity or (device.local_cpus if device else None)
    return set(found) if found else None


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
