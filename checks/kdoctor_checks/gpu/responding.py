"""Whether every GPU answers the driver."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import NOTHING_CHANGED, RESET_NEEDED, hanging, lost, lost_addresses
from kdoctor_checks._kernel_log import describe, is_failure


@check("gpu.responding", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def responding(gpus: Gpus, pci: PciDevices | Unavailable, log: KernelLog | Unavailable) -> Iterator[Outcome]:
    """Every GPU that the driver counts answers it.

    Why: a GPU that fell off the bus, must be reset, or hangs in a call takes every job that touches it along; the
    other GPUs are unharmed. NVML counts such a GPU on, and nvidia-smi prints an error for it, or hangs.
    Remedy: read what the kernel logged about the GPU, and reset it or restart; one that is lost again needs a
    technician.
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
            yield _finding(gpu, f"NVML says {found}{where and f' ({where} on the bus)'}", logged, gpu.bus_id or where)
        elif hung := hanging(gpu):
            words = f"the call for its {hung.replace('_', ' ')} hangs ({gpu.errors[hung]})"
            yield _finding(gpu, words, logged, gpu.bus_id)
        elif error:
            yield Unjudged(subject=gpu.subject, reason=f"it could not be opened ({error})")
        elif not (gpu.name or gpu.uuid or gpu.bus_id):
            yield Unjudged(subject=gpu.subject, reason="it was opened, and tells neither its name nor its identity")
        else:
            yield Evidence(subject=gpu.subject, observed=gpu.name or "answers, but its name was not read")
    if gpus.count is None:
        yield Unjudged(subject="GPUs", reason=f"how many there are was not read ({gpus.errors.get('count')})")
    elif gpus.count > len(gpus.devices):
        yield Unjudged(subject="GPUs", reason=f"NVML counts {gpus.count}, but only {len(gpus.devices)} were read")


def _where(gpu: Gpu, gpus: Gpus, addresses: frozenset[str]) -> str:
    """The address of a lost GPU that does not tell it, where it can only be that one."""
    nameless = [other for other in gpus.devices if lost(other) and not other.bus_id]
    told = {other.bus_id for other in gpus.devices}
    left = sorted(addresses - told)
    return left[0] if gpu in nameless and len(nameless) == 1 == len(left) else ""


def _finding(gpu: Gpu, observed: str, log: KernelLog | None, bus_id: str | None) -> Finding:
    events = [event for event in log.events if event.bus_id == bus_id] if log and bus_id else []
    words = dict.fromkeys(
        describe(event) for event in events if is_failure(event) or event.kind == "fallen-off-the-bus"
    )
    told = f"; the kernel logged: {', '.join(words)}" if words else ""
    return Finding(
        subject=gpu.subject,
        observed=observed + told,
        expected="every call is answered",
        remedy=_reset(gpu) if "hangs" in observed or "reset" in observed.lower() else RESET_NEEDED,
        rollback=NOTHING_CHANGED,
    )


def _reset(gpu: Gpu) -> Remedy:
    return Remedy(
        summary="End all that uses the GPU and reset it; where that fails, restart the machine.",
        action=Action.REBOOT,
        commands=(
            "sudo dmesg | grep -iE 'NVRM|Xid'",
            f"sudo nvidia-smi --gpu-reset -i {gpu.bus_id or gpu.index}",
            "sudo reboot",
        ),
    )
