import re
from collections.abc import Collection, Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpus, Host, KernelDriver, NotCollected, PciDevice, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor_checks._driver import blacklisted
from kdoctor_checks._gpus import DRIVER, RESET_NEEDED, RESPONDING, RESTART, lost, lost_addresses, subjects

_GPU_NODE = re.compile(r"/dev/nvidia\d+")


@check("gpu.visible-to-driver", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def visible_to_driver(
    pci: PciDevices, gpus: Gpus, kernel: KernelDriver | Unavailable, host: Host | Unavailable
) -> Iterator[Outcome]:
    """The driver sees every GPU on the PCI bus.

    Why: a GPU that fell off the bus, or that the driver could not start, stays in the PCI list. NVML and CUDA continue
    without it, often without a log message, and the job trains on fewer GPUs than the machine has. GPUs that NVML
    counts but that do not respond are reported by gpu.responding. A container lists all PCI devices of its host, but
    has device nodes for its own GPUs only, which identifies the GPUs of others. In a recording without the host, a GPU
    counts as missing if lspci shows it bound to nvidia.
    Remedy: read the kernel log, then restart. If the GPU is lost again, have it serviced.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/nvml-api/
    """
    for group in (kernel, host):
        if isinstance(group, Unavailable) and not isinstance(group, NotCollected):
            yield Unjudged(subject="GPUs", reason=group.unavailable)
            return
    recorded = isinstance(host, Unavailable)
    known = {gpu.bus_id: gpu for gpu in gpus.devices if gpu.bus_id}
    reported = lost_addresses(gpus, pci)
    names = subjects(gpus, pci)
    missing = [device for device in pci.gpus if device.bus_id not in known and device.bus_id not in reported]
    unnamed = [gpu for gpu in gpus.devices if not gpu.bus_id and not lost(gpu)]
    for device in pci.gpus:
        gpu = known.get(device.bus_id)
        if gpu and not lost(gpu):
            yield Evidence(subject=gpu.subject, observed=f"on the PCI bus and in NVML ({gpu.name or 'name not read'})")
        elif device.bus_id in reported:
            observed = "on the PCI bus and counted by NVML, but it does not respond (gpu.responding)"
            yield Evidence(subject=names.get(device.bus_id, f"GPU at {device.bus_id}"), observed=observed)
    yield from _judge_missing(missing, unnamed=len(unnamed), hidden=_hidden(gpus, kernel, host), recorded=recorded)
    for gpu in unnamed:
        yield Unjudged(subject=gpu.subject, reason=f"its bus id was not read ({gpu.errors.get('bus_id', 'no reason')})")
    listed = {device.bus_id for device in pci.gpus}
    yield from _lost_without_device(gpus, listed, may_be_missing=bool(missing or reported & listed))
    for bus_id in sorted(set(known) - listed - reported):
        yield Unjudged(subject=known[bus_id].subject, reason="in NVML, but missing from the list of PCI devices")


def _lost_without_device(gpus: Gpus, listed: Collection[str], *, may_be_missing: bool) -> Iterator[Outcome]:
    """The GPUs that NVML counts as lost, and that the bus does not show either."""
    for gpu in filter(lost, gpus.devices):
        if gpu.bus_id not in listed if gpu.bus_id else not may_be_missing:
            reason = "does not respond, and is missing from the list of PCI devices"
            yield Unjudged(subject=gpu.subject, reason=reason, explained_by=(RESPONDING,))


def _judge_missing(
    missing: Sequence[PciDevice], *, unnamed: int, hidden: bool | None, recorded: bool
) -> Iterator[Outcome]:
    for device in missing:
        if device.driver == "vfio-pci":
            yield Evidence(subject=device.bus_id, observed="assigned to a virtual machine (vfio-pci)")
        elif device.driver not in ("nvidia", None):
            yield _foreign_driver(device)
        elif hidden:
            yield Evidence(subject=device.bus_id, observed="not assigned to this container (no device node)")
        elif unnamed or (hidden is None and not (recorded and device.driver == "nvidia")):
            why = "a GPU whose bus id was not read may be this one" if unnamed else "this may be a container"
            yield Unjudged(subject=device.bus_id, reason=f"on the PCI bus, not in NVML; {why}")
        else:
            binding = "has no driver bound" if device.driver is None else "is bound to the driver"
            yield Finding(
                subject=f"GPU at {device.bus_id}",
                observed=f"missing from NVML; the PCI device {binding}",
                expected="listed by NVML",
                remedy=RESET_NEEDED,
                rollback=RESTART,
            )


def _hidden(gpus: Gpus, kernel: KernelDriver | Unavailable, host: Host | Unavailable) -> bool | None:
    """Whether GPUs that NVML does not list are hidden from this container; None if unknown.

    A container has a device node for each of its GPUs. If there are more nodes than GPUs in NVML, a GPU was lost.
    """
    if isinstance(kernel, Unavailable) or isinstance(host, Unavailable):
        return None
    if host.container == "none":
        return False
    if kernel.nodes is None:
        return None
    nodes = sum(bool(_GPU_NODE.fullmatch(node.path)) for node in kernel.nodes)
    if nodes > len(gpus.devices):
        return False
    return True if host.container and nodes == len(gpus.devices) > 0 else None


def _foreign_driver(device: PciDevice) -> Finding:
    remedy, rollback = blacklisted(str(device.driver), f"Keep {device.driver} from binding the GPU, then restart.")
    return Finding(
        subject=f"GPU at {device.bus_id}",
        observed=f"bound to the kernel driver {device.driver}",
        expected="bound to nvidia",
        remedy=remedy,
        rollback=rollback,
    )
