from collections.abc import Collection, Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, KernelDriver, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, RESET_NEEDED, RESTART, field_label, hanging, letters, located, lost, reset
from kdoctor_checks._kernel_log import describe, is_failure
from kdoctor_checks.gpu._recovery import STATED

_XID_FALLEN = 79


@check("gpu.responding", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def responding(
    gpus: Gpus | Unavailable,
    pci: PciDevices | Unavailable,
    log: KernelLog | Unavailable,
    kernel: KernelDriver | Unavailable,
) -> Iterator[Outcome]:
    """Every GPU that the driver lists responds.

    Why: a GPU that fell off the bus, needs a reset or hangs ends every job that touches it. The other GPUs are not
    affected. NVML keeps counting such a GPU, and nvidia-smi prints an error for it or hangs. lspci lists a GPU that has
    fallen off the bus as "rev ff", because its configuration space reads all ones. A GPU whose memory regions got no
    addresses ("Memory at <unassigned>") cannot be started.
    Remedy: read the kernel log, then reset the GPU or restart. If the GPU is lost again, have it serviced.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/xid-errors/
    """
    logged = log if isinstance(log, KernelLog) else None
    is_open = isinstance(kernel, KernelDriver) and kernel.flavour == "open"
    known = located(gpus, pci) if isinstance(gpus, Gpus) else ()
    dead = _off_the_bus(pci, {gpu.bus_id for gpu in known if lost(gpu) or hanging(gpu)})
    dead += _without_addresses(pci)
    yield from dead
    if isinstance(gpus, Unavailable):
        if not dead:
            yield Unjudged(subject="GPUs", reason=gpus.unavailable)
        return
    for gpu in located(gpus, pci):
        error = gpu.errors.get("handle")
        if lost(gpu) or hanging(gpu):
            yield _finding(gpu, _events(gpu, logged), is_open=is_open)
        elif error:
            yield Unjudged(subject=gpu.subject, reason=f"could not be opened ({error})")
        elif not (gpu.name or gpu.uuid or gpu.bus_id):
            why = gpu.errors.get("name") or gpu.errors.get("uuid") or "no reason given"
            yield Unjudged(subject=gpu.subject, reason=f"name, UUID and bus id were not read ({why})")
        else:
            yield Evidence(subject=gpu.subject, observed=gpu.name or "responds (name not read)")
    if gpus.count is None:
        yield Unjudged(subject="GPUs", reason=f"the number of GPUs was not read ({gpus.errors.get('count')})")
    elif gpus.count != len(gpus.devices):
        yield Unjudged(subject="GPUs", reason=f"NVML counts {gpus.count}, but {len(gpus.devices)} were read")


def _off_the_bus(pci: PciDevices | Unavailable, reported: Collection[str | None]) -> list[Finding]:
    """The GPUs whose configuration space reads all ones, except those that the driver reports as lost."""
    devices = pci.gpus if isinstance(pci, PciDevices) else ()
    return [
        Finding(
            subject=f"GPU at {device.bus_id}",
            observed="has fallen off the bus: its configuration space reads all ones (rev ff)",
            brief="has fallen off the bus (rev ff)",
            expected="responds to every call",
            remedy=RESET_NEEDED,
            rollback=RESTART,
        )
        for device in devices
        if device.responds is False and device.bus_id not in reported
    ]


def _without_addresses(pci: PciDevices | Unavailable) -> list[Finding]:
    """The GPUs that no driver could start, because memory regions of them have no addresses."""
    devices = pci.gpus if isinstance(pci, PciDevices) else ()
    return [
        Finding(
            subject=f"GPU at {device.bus_id}",
            observed=f"{counted(device.regions_without_address, 'memory region')} without an address",
            brief="has no address space",
            expected="addresses for every memory region",
            remedy=STATED["no-address-space"],
        )
        for device in devices
        if device.regions_without_address and device.driver is None and device.responds is not False
    ]


def _events(gpu: Gpu, log: KernelLog | None) -> list[KernelLogEvent]:
    events = [event for event in log.events if event.bus_id == gpu.bus_id] if log and gpu.bus_id else []
    return [event for event in events if is_failure(event) or event.kind == "fallen-off-the-bus"]


def _finding(gpu: Gpu, events: list[KernelLogEvent], *, is_open: bool) -> Finding:
    logged = ", ".join(dict.fromkeys(map(describe, events)))
    observed, brief = _observed(gpu, events)
    not_found = letters(lost(gpu) or "").endswith("notfound")
    if not_found and is_open and not events:
        brief = "the open kernel module does not start it (Not Found)"
    fix = _reset(gpu) if not lost(gpu) or "reset" in observed.lower() else RESET_NEEDED
    return Finding(
        subject=gpu.subject,
        observed=observed + (f"; kernel log: {logged}" if logged else ""),
        brief=brief,
        expected="responds to every call",
        remedy=STATED["not-supported"] if not_found and is_open and not events else fix,
        rollback=RESTART,
    )


def _observed(gpu: Gpu, events: list[KernelLogEvent]) -> tuple[str, str]:
    """The long and the short form of the problem."""
    error, hung = lost(gpu), hanging(gpu)
    if not error and hung:
        return f"hangs when its {field_label(hung)} is read ({gpu.errors[hung]})", f"hangs ({field_label(hung)})"
    fell = [event for event in events if event.code == _XID_FALLEN or event.kind == "fallen-off-the-bus"]
    if fell:
        xid = f" (Xid {_XID_FALLEN})" if any(event.code == _XID_FALLEN for event in fell) else ""
        return f"does not respond ({error})", f"lost, fell off the bus{xid}"
    if error == gpu.errors.get("handle") and "lost" not in (error or "").lower():
        state = f"cannot be opened ({error})"
    else:
        word = (error or "").lower()
        state = "lost" if "lost" in word else "does not respond" + (" until it is reset" if "reset" in word else "")
    xid = next((f" (Xid {event.code})" for event in reversed(events) if event.kind == "xid"), "")
    return f"does not respond ({error})", f"{state}{xid}"


def _reset(gpu: Gpu) -> Remedy:
    return replace(
        reset([gpu]), summary="Stop all processes on the GPU and reset it. If that fails, restart the machine."
    )
