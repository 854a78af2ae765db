from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, Host, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, answering, not_answering

_BINDING = Rollback.nothing("not needed (a binding ends with the process)")


@check("topology.numa", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def numa(gpus: Gpus, host: Host, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """This process can use CPUs and memory near each GPU.

    Why: a process that is bound to the CPUs or memory of another socket sends every batch and every kernel launch
    across the link between sockets.
    Remedy: start the job without the binding, or bind it to the GPU's NUMA node.
    Sources:
        https://docs.pytorch.org/docs/main/elastic/numa.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://man7.org/linux/man-pages/man7/cpuset.7.html
    """
    nodes = [node for node in host.numa_nodes or () if node.cpus]
    if len(nodes) == 1:
        yield NotApplicable(reason="only one NUMA node")
        return
    yield from not_answering(gpus)
    for gpu in answering(gpus):
        near = _near(gpu, pci)
        if near is None:
            error = gpu.errors.get("cpu_affinity", "no reason given")
            yield Unjudged(subject=gpu.subject, reason=f"the CPUs near it were not read ({error})")
        elif host.cpu_affinity is None:
            yield Unjudged(subject=gpu.subject, reason="the CPUs of this process were not read")
        elif not near & set(host.cpu_affinity):
            yield _finding(gpu, host, host.cpu_affinity, near)
        else:
            yield _memory(gpu, host, near, len(near & set(host.cpu_affinity)))


def _near(gpu: Gpu, pci: PciDevices | Unavailable) -> set[int] | None:
    device = pci.find(gpu.bus_id) if isinstance(pci, PciDevices) else None
    found = gpu.cpu_affinity or (device.local_cpus if device else None)
    return set(found) if found else None


def _memory(gpu: Gpu, host: Host, near: set[int], shared: int) -> Outcome:
    """The outcome for the memory, where the CPUs are as expected."""
    nodes = {node.index for node in host.numa_nodes or () if near & set(node.cpus)} or set(gpu.numa_affinity or ())
    if host.memory_nodes is None or not nodes:
        return Unjudged(subject=gpu.subject, reason="the memory nodes of this process were not read")
    listed = ", ".join(map(str, sorted(nodes)))
    if nodes & set(host.memory_nodes):
        observed = f"{shared} of {counted(len(near), 'CPU')} near it available, and memory of NUMA node {listed}"
        return Evidence(subject=gpu.subject, observed=observed)
    allowed = ", ".join(map(str, host.memory_nodes)) or "none"
    return Finding(
        subject=gpu.subject,
        observed=f"near NUMA node {listed}, but this process may use memory of node {allowed} only",
        expected="memory of a node near each GPU",
        remedy=Remedy.configure(
            "Allow that node where the job is started (Slurm, Kubernetes, or --cpuset-mems of the container).",
            look=("grep Mems_allowed_list /proc/self/status", "numactl --hardware"),
        ),
        brief=f"this process may not use memory of NUMA node {listed}",
        rollback=_BINDING,
    )


def _finding(gpu: Gpu, host: Host, ours: tuple[int, ...], near: set[int]) -> Finding:
    every = () if host.cpus is None else (f"taskset -pc 0-{host.cpus - 1} $$",)
    return Finding(
        subject=gpu.subject,
        observed=f"none of its {counted(len(near), 'nearby CPU')} is available "
        f"(this process may use {counted(len(ours), 'CPU')})",
        expected="a CPU near each GPU",
        brief="no CPU near it is available to this process",
        remedy=Remedy.configure(
            "Start the job without the binding to CPUs. In a shell, remove the binding:",
            *every,
            look=("nvidia-smi topo -m", "taskset -pc $$"),
        ),
        rollback=_BINDING,
    )
