"""Whether the driver sees every GPU that is on the PCI bus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpus, Host, KernelDriver, PciDevice, PciDevices
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import NOTHING_CHANGED, RESET_NEEDED, lost, lost_addresses

_GPU_NODE = re.compile(r"/dev/nvidia\d+")


@check(
    "gpu.visible-to-driver",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["driver.library-matches-module"],
)
def visible_to_driver(pci: PciDevices, gpus: Gpus, kernel: KernelDriver, host: Host) -> Iterator[Outcome]:
    """Every GPU on the PCI bus answers to the driver.

    Why: a GPU that fell off the bus, or that the driver could not start, stays in the PCI list while NVML and CUDA
    go on without it, often without a line in the log. The job then trains on fewer GPUs than the machine has. A GPU
    that NVML counts and that does not answer is told by gpu.responding. A container lists all of its host's PCI
    devices but has device nodes for its own GPUs only: those that were not given to it are told apart by that.
    Remedy: read what the kernel logged about the GPU that is missing, and restart; a GPU that is lost again needs a
    technician.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/nvml-api/
    """
    known = {gpu.bus_id: gpu for gpu in gpus.devices if gpu.bus_id}
    told = lost_addresses(gpus, pci)
    missing = [device for device in pci.gpus if device.bus_id not in known and device.bus_id not in told]
    nameless = [gpu for gpu in gpus.devices if not gpu.bus_id and not lost(gpu)]
    for device in pci.gpus:
        gpu = known.get(device.bus_id)
        if gpu and not lost(gpu):
            yield Evidence(subject=gpu.subject, observed=f"on the PCI bus and in NVML ({gpu.name or 'name not read'})")
    yield from _judge_missing(missing, nameless=len(nameless), hidden=_hidden(gpus, kernel, host))
    for gpu in nameless:
        yield Unjudged(subject=gpu.subject, reason=f"its bus id was not read ({gpu.errors.get('bus_id', 'no reason')})")
    listed = {device.bus_id for device in pci.gpus}
    for bus_id in sorted(set(known) - listed - told):
        yield Unjudged(
            subject=known[bus_id].subject, reason="NVML lists it, but the PCI devices do not: they are incomplete"
        )


def _judge_missing(missing: Sequence[PciDevice], *, nameless: int, hidden: bool | None) -> Iterator[Outcome]:
    for device in missing:
        if device.driver == "vfio-pci":
            yield Evidence(subject=device.bus_id, observed="given to a virtual machine (vfio-pci)")
        elif device.driver not in ("nvidia", None):
            yield _foreign_driver(device)
        elif hidden:
            yield Evidence(subject=device.bus_id, observed="not given to this container (it has no device node)")
        elif hidden is None or nameless:
            why = "a GPU whose bus id was not read may be this one" if nameless else "this may be a container"
            yield Unjudged(subject=device.bus_id, reason=f"on the PCI bus, not in NVML; {why}")
        elif device.driver is None:
            yield _not_answering(
                device.bus_id, "on the PCI bus, but no driver is bound to it and NVML does not list it"
            )
        else:
            yield _not_answering(device.bus_id, "on the PCI bus and bound to the driver, but NVML does not list it")


def _hidden(gpus: Gpus, kernel: KernelDriver, host: Host) -> bool | None:
    """Whether GPUs that NVML does not list were not given to this container; None where it cannot be told.

    A container has a node for each GPU that it was given; with more nodes than GPUs in NVML, one was lost.
    """
    if host.container == "none":
        return False
    if kernel.nodes is None:
        return None
    nodes = sum(bool(_GPU_NODE.fullmatch(node.path)) for node in kernel.nodes)
    if nodes > len(gpus.devices):
        return False
    return True if host.container and nodes == len(gpus.devices) > 0 else None


def _not_answering(bus_id: str, observed: str) -> Finding:
    return Finding(
        subject=f"GPU at {bus_id}",
        observed=observed,
        expected="every GPU on the PCI bus answers through NVML",
        remedy=RESET_NEEDED,
        rollback=NOTHING_CHANGED,
    )


def _foreign_driver(device: PciDevice) -> Finding:
    return Finding(
        subject=f"GPU at {device.bus_id}",
        observed=f"bound to the kernel driver {device.driver}",
        expected="bound to nvidia",
        remedy=Remedy(
            summary=f"Keep {device.driver} from taking the GPU, and restart.",
            action=Action.REBOOT,
            commands=(
                f"echo 'blacklist {device.driver}' | sudo tee /etc/modprobe.d/blacklist-{device.driver}.conf",
                "sudo update-initramfs -u",
                "sudo reboot",
            ),
        ),
        rollback=Rollback.to(
            f"{device.driver} as recorded",
            f"sudo rm /etc/modprobe.d/blacklist-{device.driver}.conf",
            "sudo update-initramfs -u",
            "sudo reboot",
        ),
    )
