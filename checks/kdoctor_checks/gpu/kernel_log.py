import re
from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.commands.system import NVIDIA_DEVICES
from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import (
    DRIVER_MESSAGES,
    RELOAD_MODULE,
    RESPONDING,
    RESTART,
    hanging,
    inactive_links,
    located,
    lost_addresses,
    subjects,
)
from kdoctor_checks._kernel_log import (
    LOG_UNREAD,
    before_timeout,
    by_device,
    codes,
    fatal_pcie,
    is_failure,
    is_unclassified,
    log_subject,
    nothing_logged,
    nvidia_addresses,
    summary,
)
from kdoctor_checks._xids import AFTER_FIRMWARE, OF_FIRMWARE, OF_LINKS, OF_MEMORY, XID_RECOVERY
from kdoctor_checks.gpu._memory import bad_memory
from kdoctor_checks.gpu._recovery import STATED, is_of_firmware, is_reset, recovery

_NOT_PROBED, _MISMATCH = "not-probed", "version-mismatch"
_KINDS = (*("fallen-off-the-bus", "init-failed", "gsp-failed", "reset-required", "uvm-fatal"), *(*STATED, _NOT_PROBED))
_OF_DRIVER = {_NOT_PROBED: ("driver.loaded",), _MISMATCH: ("driver.library-matches-module", "driver.loaded")}
"""Events that checks of the driver report as well."""
_FAILS = re.compile(r"fail|error|cannot|unable|timed? ?out|exceeded|invalid", re.IGNORECASE)
_UNLOAD = Remedy.configure(
    "Unload the driver that owns the GPU, and load nvidia. The log and the command name it; here for nouveau. If none "
    "does, the firmware's console has it: start the kernel with video=efifb:off.",
    "sudo modprobe -r nouveau",
    "sudo modprobe nvidia",
    look=(NVIDIA_DEVICES, DRIVER_MESSAGES),
)
_OWN = {_NOT_PROBED: _UNLOAD, _MISMATCH: RELOAD_MODULE}


@check("gpu.kernel-log", severity=Severity.ERROR, needs_gpus=True, unread=LOG_UNREAD)
def kernel_log(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The kernel log has no GPU failure.

    Why: the driver logs faults as Xids, and some GPUs fall off the bus without one. Memory errors (48, 64, 95, 140),
    NVLink errors (74, 136, and 144 to 150 if fatal), unresponsive units and firmware (46, 62, 109, 119, 120, 158) and
    pending recovery actions (154) return under load and end the job. NVIDIA's catalog decides for each code. A code
    that it does not explain is unknown, and so is a message of the driver that kdoctor does not know. GPUs that do not
    respond are reported by gpu.responding, program errors by gpu.application-xids, contained memory errors (94) by
    gpu.logged-remapping, and PCIe errors by topology.logged-pcie-errors unless they are fatal or the device was not
    recovered. If the log is not readable, this check is skipped and driver.kernel-log gives the reason.
    Remedy: what the catalog asks for: reset the GPU, restart the machine, check its power, or contact support.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
        https://docs.nvidia.com/health-validation/reference/checks/xid.md
        https://github.com/NVIDIA/NVSentinel/issues/155
    """
    known = subjects(gpus, pci)
    # A driver that was read is judged by driver.library-matches-module, and the mismatch may be over.
    kinds = {*_KINDS} if isinstance(gpus, Gpus) else {*_KINDS, _MISMATCH}
    if all(event.kind != "init-failed" for event in log.events):
        kinds -= {"no-firmware"}  # the proprietary module can go on without it
    ended = fatal_pcie(log, nvidia_addresses(gpus, pci))
    first = before_timeout(log.events)
    # Where the driver works, nouveau has a display's GPU.
    of_display = isinstance(gpus, Gpus) and gpus.state == "ready"
    logged = [event for event in log.events if not (of_display and event.text.startswith("nouveau "))]
    found = _by_gpu(
        [event for event in logged if is_failure(event) or event.kind in kinds or event in (*ended, *first)]
    )
    resets = [bus_id for bus_id, events in found.items() if bus_id and is_reset(events)]
    for bus_id, events in found.items():
        causes = {event.kind for event in events} - {"init-failed"}
        own = _OWN.get(causes.pop()) if len(causes) == 1 else None
        remedy, rollback = (own, RESTART) if own else recovery(bus_id, events, resets)
        yield Finding(
            subject=log_subject(bus_id, known) if bus_id or any(map(is_failure, events)) else "kernel log",
            observed=summary(events),
            brief=codes([event for event in events if event.kind in STATED] or _causes(events)),
            expected="no failure in the kernel log",
            remedy=remedy,
            rollback=rollback,
            explained_by=_explained_by(bus_id, events, gpus, pci),
        )
    unclassified = [event for event in log.events if is_unclassified(event)]
    for bus_id, events in by_device(unclassified).items():
        subject = log_subject(bus_id, known) if bus_id else "kernel log"
        of_xids = any(event.kind == "xid" for event in events)
        yield Unjudged(subject=subject, reason=_unknown(events), answered_by="" if of_xids else "smoke.gpus-worked")
    if not found and not unclassified:
        yield nothing_logged(log, gpus, pci, "GPU failure")


def _by_gpu(events: Sequence[KernelLogEvent]) -> dict[str | None, list[KernelLogEvent]]:
    """Failures by address.

    Those without address belong to the GPU with an Xid, if there is only one, and so does the cause of GPUs that do not
    start. Where the driver stated why one does not, lines that only repeat that GPUs did not are about these GPUs.
    """
    if any(event.kind in STATED and event.bus_id for event in events):
        events = [event for event in events if event.bus_id or event.kind not in ("init-failed", *STATED)]
    found = by_device(events)
    named = [bus_id for bus_id in found if bus_id]
    if any(event.code in OF_FIRMWARE for event in events):
        # The driver frames these Xids with further lines about the firmware.
        found[None] = [event for event in found.get(None, []) if event.kind != "gsp-failed"]
    own = [event for event in found.get(None, []) if event.kind not in (_NOT_PROBED, _MISMATCH)]
    causes = {event.kind for event in own} & {*STATED, "gsp-failed", "init-failed"}
    is_stated = causes and {event.kind for event in events if event.bus_id} == {"init-failed"}
    if len(named) == 1 and (is_stated or any(map(is_failure, found[named[0]]))) and own:
        found[named[0]] = sorted((*found[named[0]], *own), key=events.index)
        found[None] = [event for event in found[None] if event not in own]
    return {bus_id: alike for bus_id, alike in found.items() if alike}


def _causes(events: Sequence[KernelLogEvent]) -> list[KernelLogEvent]:
    """The failures without what follows: firmware of a GPU that is lost, time-outs of firmware that failed."""
    is_lost = any(event.kind == "fallen-off-the-bus" for event in events)
    events = [event for event in events if not (is_lost and event.kind == "gsp-failed")]
    first = next((place for place, event in enumerate(events) if is_of_firmware(event)), len(events))
    return [event for place, event in enumerate(events) if place < first or event.code != AFTER_FIRMWARE]


def _unknown(events: Sequence[KernelLogEvent]) -> str:
    """Why these events cannot be judged."""
    xids = [event for event in events if event.kind == "xid"]
    if xids:
        return f"{codes(xids)} not explained in NVIDIA's catalog ({summary(xids)})"
    times = sum(event.times for event in events)
    telling = next((event for event in reversed(events) if _FAILS.search(event.text)), None)
    shown = f"such as {telling.text!r}" if telling else f"the last one {events[-1].text!r}"
    return f"{counted(times, 'unknown message')} of a driver, {shown}"


def _explained_by(
    bus_id: str | None, events: Sequence[KernelLogEvent], gpus: Gpus | Unavailable, pci: PciDevices | Unavailable
) -> tuple[str, ...]:
    """The checks that report the state these events left the GPU in, if every event is part of it."""
    alike = {event.kind for event in events}
    if len(alike) == 1 and alike <= _OF_DRIVER.keys():
        return _OF_DRIVER[alike.pop()]
    if not isinstance(gpus, Gpus) or bus_id is None:
        return ()
    gpu = next((gpu for gpu in located(gpus, pci) if gpu.bus_id == bus_id), None)
    if bus_id in lost_addresses(gpus, pci) or (gpu and hanging(gpu)):
        return (RESPONDING,)
    if gpu is None:
        return {"ready": ("gpu.visible-to-driver",), "failed": ("driver.loaded",)}.get(gpus.state, ())
    codes_found = {event.code for event in events if event.kind == "xid"}
    asks = gpu.recovery_action not in (None, "none")
    states = (
        (OF_MEMORY, bad_memory(gpu)),
        (OF_LINKS, ("topology.nvlink", "topology.nvlink-direct") if inactive_links(gpu) else ()),
        ({XID_RECOVERY}, ("gpu.recovery-action",) if asks else ()),
    )
    explained = {code for group, checks in states for code in group if checks}
    if len(events) > sum(event.kind == "xid" for event in events) or codes_found - explained:
        return ()
    return tuple(check for group, checks in states if group & codes_found for check in checks)
