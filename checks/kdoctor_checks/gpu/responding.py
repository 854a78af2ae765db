from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import RESET_NEEDED, RESTART, field_label, hanging, lost, lost_addresses, reset
from kdoctor_checks._kernel_log import describe, is_failure


@check("gpu.responding", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def responding(gpus: Gpus, pci: PciDevices | Unavailable, log: KernelLog | Unavailable) -> Iterator[Outcome]:
    """Every GPU that the driver lists responds.

    Why: a GPU that fell off the bus, needs a reset or hangs ends every job that touches it. The other GPUs are not
    affected. NVML keeps counting such a GPU, and nvidia-smi prints an error for it or hangs.
    Remedy: read the kernel log, then reset the GPU or restart. If the GPU is lost again, have it serviced.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/xid-errors/
    """
    logged = log if isinstance(log, KernelLog) else None
    addresses = lost_addresses(gpus, pci)
    for gpu in gpus.devices:
        error = gpu.errors.get("handle")
        if found := lost(gpu):
            where = _where(gpu, gpus, addresses)
            address = f" at {where}" if where else ""
            yield _finding(gpu, f"does not respond{address} ({found})", logged, gpu.bus_id or where)
        elif hung := hanging(gpu):
            observed = f"hangs when its {field_label(hung)} is read ({gpu.errors[hung]})"
            yield _finding(gpu, observed, logged, gpu.bus_id)
        elif error:
            yield Unjudged(subject=gpu.subject, reason=f"could not be opened ({error})")
        elif not (gpu.name or gpu.uuid or gpu.bus_id):
            yield Unjudged(subject=gpu.subject, reason="could be opened, but name, UUID and bus id were not read")
        else:
            yield Evidence(subject=gpu.subject, observed=gpu.name or "responds (name not read)")
    if gpus.count is None:
        yield Unjudged(subject="GPUs", reason=f"the number of GPUs was not read ({gpus.errors.get('count')})")
    elif gpus.count > len(gpus.devices):
        yield Unjudged(subject="GPUs", reason=f"NVML counts {gpus.count}, but only {len(gpus.devices)} were read")


def _where(gpu: Gpu, gpus: Gpus, addresses: frozenset[str]) -> str:
    """The address of a lost GPU that does not report it, if only one is possible."""
    unnamed = [other for other in gpus.devices if lost(other) and not other.bus_id]
    left = sorted(addresses - {other.bus_id for other in gpus.devices})
    return left[0] if gpu in unnamed and len(unnamed) == 1 == len(left) else ""


def _finding(gpu: Gpu, observed: str, log: KernelLog | None, bus_id: str | None) -> Finding:
    events = [event for event in log.events if event.bus_id == bus_id] if log and bus_id else []
    logged = dict.fromkeys(
        describe(event) for event in events if is_failure(event) or event.kind == "fallen-off-the-bus"
    )
    return Finding(
        subject=gpu.subject,
        observed=observed + (f"; kernel log: {', '.join(logged)}" if logged else ""),
        expected="responds to every call",
        remedy=_reset(gpu) if "hangs" in observed or "reset" in observed.lower() else RESET_NEEDED,
        rollback=RESTART,
    )


def _reset(gpu: Gpu) -> Remedy:
    return Remedy(
        summary="Stop all processes on the GPU and reset it. If that fails, restart the machine.",
        action=Action.REBOOT,
        commands=(*reset(gpu, read_log=True).commands, "sudo reboot"),
    )
