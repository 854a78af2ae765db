from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Environment, Gpu, Gpus, PciDevice, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._gpus import answering, not_answering
from kdoctor_fleet.checks.network._rdma import HCA, NO_RDMA, hca_list, inspect, ports
from kdoctor_fleet.facts import Network, RdmaDevice

_LEVELS = ("PCIe switch", "host bridge", "NUMA node", "other NUMA node")
_FAR = len(_LEVELS) - 1


@check("network.gpu-affinity", severity=Severity.WARNING, needs_gpus=True)
def gpu_affinity(
    network: Network, gpus: Gpus, pci: PciDevices, environment: Environment | Unavailable
) -> Iterator[Outcome]:
    """Every GPU has an active RDMA device as near as the machine provides.

    Why: GPUDirect RDMA is fast below one PCIe switch. If the device next to a GPU is inactive, or NCCL_IB_HCA leaves it
    out, the GPU's data crosses the processors' interconnect and shares another GPU's device. A machine with fewer
    devices than sockets has distant GPUs by design, which is evidence and not a fault.
    Remedy: bring the device up, or add it to NCCL_IB_HCA.
    Sources:
        https://docs.nvidia.com/cuda/gpudirect-rdma/
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if not network.rdma:
        yield NO_RDMA
        return
    used = [one.device for one in ports(network, hca_list(environment)) if one.active]
    if not used:
        yield NotApplicable(reason="no RDMA port that the job may use is active")
        return
    unused = [device for device in network.rdma if device not in used]
    yield from not_answering(gpus)
    for gpu in answering(gpus):
        device = pci.find(gpu.bus_id)
        yield _judge(gpu, device, used, unused)


def _judge(gpu: Gpu, place: PciDevice | None, used: Sequence[RdmaDevice], unused: Sequence[RdmaDevice]) -> Outcome:
    near, better = _nearest(place, used), _nearest(place, unused)
    if near is None:
        return Unjudged(subject=gpu.subject, reason="its place on the PCI bus, or that of the RDMA devices, is unknown")
    level, name = near
    if level < _FAR or better is None or better[0] == _FAR:
        return Evidence(subject=gpu.subject, observed=f"nearest is {name}: {_words(level)}")
    return Finding(
        subject=gpu.subject,
        observed=f"the nearest active RDMA device is {name} on another NUMA node; {better[1]} is nearer "
        f"({_words(better[0])}) and inactive or not in {HCA}",
        brief="the RDMA device next to it is not in use",
        expected="the nearest RDMA device in use",
        remedy=inspect(f"Bring {better[1]} up, or add it to {HCA}.", "nvidia-smi topo -m", f"echo ${HCA}"),
        explained_by=("network.port-state", "network.nccl-devices"),
    )


def _words(level: int) -> str:
    return f"{'on an' if level == _FAR else 'same '}{_LEVELS[level]}"


def _nearest(place: PciDevice | None, devices: Sequence[RdmaDevice]) -> tuple[int, str] | None:
    levels = [(level, device.name) for device in devices if (level := _level(place, device)) is not None]
    return min(levels, key=lambda found: found[0]) if levels else None


def _level(place: PciDevice | None, device: RdmaDevice) -> int | None:
    """The index of what both have in common; None if unknown. In virtual machines only the NUMA node is known."""
    if place is None:
        return None
    above = [bridge.bus_id for bridge in place.path or ()]
    if above and device.path:
        if above[0] == device.path[0]:
            return 0
        if above[0].rpartition(":")[0] == device.path[0].rpartition(":")[0]:
            return 1
    if place.numa_node is None or device.numa_node is None:
        return None
    return 2 if place.numa_node == device.numa_node else _FAR
