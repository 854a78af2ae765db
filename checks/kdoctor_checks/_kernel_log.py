"""Shared by checks of the kernel log."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, NotApplicable, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._catalog import xids
from kdoctor_checks._gpus import absent
from kdoctor_checks._xids import AFTER_FIRMWARE, DRIVER_FIRMWARE, XID_RECOVERY, caused_by, classify, meaning

_LONGEST = 60
_OWN_NUMBER = re.compile(r"NVRM: (GPU\d+) ")

LOG_INCOMPLETE = NotApplicable(
    reason="what was read of the kernel log does not reach back to the boot (see driver.kernel-log)"
)
LOG_UNREAD = "the kernel log was not read (see driver.kernel-log)"
"""Why checks of the log are skipped without it."""


def is_failure(event: KernelLogEvent) -> bool:
    """Whether the event is an Xid after which no job should start."""
    return event.kind == "xid" and classify(event) == "failure"


def before_timeout(events: Sequence[KernelLogEvent]) -> list[KernelLogEvent]:
    """The errors of firmware, by themselves none to act on, that a time-out of the same GPU followed."""
    timeouts = {event.bus_id: place for place, event in enumerate(events) if event.code == AFTER_FIRMWARE}
    early = (event for place, event in enumerate(events) if place < timeouts.get(event.bus_id, 0))
    return [event for event in early if event.kind == "xid" and event.code == DRIVER_FIRMWARE]


def is_unclassified(event: KernelLogEvent) -> bool:
    """Whether the event is not explained: an unknown Xid, or an unknown message of a driver."""
    return event.kind == "unclassified" or (event.kind == "xid" and classify(event) == "unclassified")


def fatal_pcie(log: KernelLog, addresses: Collection[str]) -> list[KernelLogEvent]:
    """The errors that ended the link of an NVIDIA device, also those of its port. ``addresses`` are those known.

    So does an error that is not fatal, from which the device was not recovered.
    """
    errors = [event for event in log.events if event.kind == "pcie-error"]
    has_ended = any("(Fatal)" in event.text or "recovery failed" in event.text for event in errors)
    words = ("(Fatal)", "can't recover") if has_ended else ()
    ours = [event for event in errors if event.bus_id in addresses or event.text.startswith("nvidia ")]
    return [event for event in ours if any(word in event.text for word in words)]


def describe(event: KernelLogEvent) -> str:
    """An event, such as ``Xid 79 (GPU has fallen off the bus)``."""
    if event.kind == "xid" and event.code == XID_RECOVERY:
        return f"Xid 154 (recovery action: {event.recovery or 'not named'})"
    if event.kind == "xid" and (cause := caused_by(event)):
        return f"Xid {cause} ({xids()[cause].meaning}) ended a program (Xid {event.code})"
    if event.kind == "gsp-failed" and (own := _OWN_NUMBER.match(event.text)):
        return f"GSP firmware failed ({own[1]} in the log)"  # the driver's number, not that of nvidia-smi
    if event.kind == "xid":
        where = f" in MIG instance {event.instance}" if event.instance else ""
        return f"Xid {event.code}{where}" + (f" ({known})" if (known := meaning(event)) else "")
    return {
        "fallen-off-the-bus": "GPU has fallen off the bus",
        "init-failed": "GPU initialization failed",
        "no-address-space": "the firmware gave the GPU no address space",
        "not-supported": "this driver does not support the GPU",
        "no-firmware": "the driver's GSP firmware is not installed",
        "no-power": "a power cable is not connected",
        "driver-crash": "NVIDIA's driver crashed in the kernel",
        "driver-hang": "a program waits in NVIDIA's driver without end",
        "program-crash": "a program crashed",
        "program-killed": f"{event.program or 'a program'} was killed",
        "gsp-failed": "GSP firmware failed",
        "reset-required": "calls fail until the GPU is reset",
        "uvm-fatal": "fatal error of unified memory",
        "not-probed": "another driver owns the GPU",
        "version-mismatch": "driver and library have different versions",
        "crash": "kernel panic, oops or lockup",
        "hardware-error": "uncorrected hardware error",
        "hardware-corrected": "corrected hardware error",
        "pcie-error": "uncorrected PCIe error",
        "pcie-corrected": "corrected PCIe error",
    }.get(event.kind, event.kind)


def by_device(events: Iterable[KernelLogEvent]) -> dict[str | None, list[KernelLogEvent]]:
    """Events by device address; None for events without one."""
    found: dict[str | None, list[KernelLogEvent]] = {}
    for event in events:
        found.setdefault(event.bus_id, []).append(event)
    return found


def summary(events: Iterable[KernelLogEvent]) -> str:
    """Each distinct event with its count, and the text of the last line."""
    events = list(events)
    counts: Counter[str] = Counter()
    for event in events:
        counts[describe(event)] += event.times
    last = events[-1].text if events else ""
    shown = ", ".join(f"{event} x{times}" if times > 1 else event for event, times in counts.items())
    return f"{shown}; last line: {last!r}"


def codes(events: Iterable[KernelLogEvent]) -> str:
    """Each distinct event once, with its meaning as long as the text has at most 60 characters."""
    named = {
        describe(event): f"Xid {caused_by(event) or event.code}" if event.kind == "xid" else describe(event)
        for event in events
    }
    shown = some(list(dict.fromkeys(named.values())), 3)
    for full, number in named.items():
        if full not in shown and len(longer := shown.replace(number, full, 1)) <= _LONGEST:
            shown = longer
    return shown


def log_subject(bus_id: str | None, known: Mapping[str, str]) -> str:
    """The name of the GPU at this address in reports, among these names by address."""
    if not bus_id:
        return "a GPU without address in the log"
    return known.get(bus_id, f"GPU at {bus_id}")


def nothing_logged(
    log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable, wanted: str, *, sign: str | None = ""
) -> Evidence | NotApplicable | Unjudged:
    """Evidence that the log has no line of this kind, with the size of the log.

    Without a GPU that the driver lists, an empty log shows nothing, and the check is not applicable. A line of a driver
    that is not understood may be of any kind, until every GPU has trained.

    Args:
        log: the kernel log, without a line of this kind.
        gpus: the GPUs that the driver lists.
        pci: the GPUs on the bus.
        wanted: what such a line reports.
        sign: what each such line contains; None if drivers do not write it.
    """
    if excuse := absent(gpus, pci):
        return excuse
    if sign is not None and (doubtful := _doubtful(log, sign)):
        reason = f"{counted(doubtful, 'line')} of GPU drivers not understood (see gpu.kernel-log)"
        return Unjudged(
            subject="kernel log", reason=reason, explained_by=("gpu.kernel-log",), answered_by="smoke.gpus-worked"
        )
    if not log.lines or not log.complete:
        return LOG_INCOMPLETE
    observed = f"no {wanted} in {counted(log.lines, 'line')} of {log.source}, complete since boot"
    return Evidence(subject="kernel log", observed=observed)


def _doubtful(log: KernelLog, sign: str) -> int:
    """How many lines that are not understood may contain the sign. Of lines that are alike, not all texts are kept."""
    unclear = [event for event in log.events if event.kind == "unclassified"]
    without = sum(sign not in event.text for event in unclear if event.times == 1)
    return log.unclassified - without


def nvidia_addresses(gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The addresses of GPUs and NVSwitches."""
    found = {gpu.bus_id for gpu in gpus.devices if gpu.bus_id} if isinstance(gpus, Gpus) else set()
    if isinstance(pci, PciDevices):
        found |= {device.bus_id for device in (*pci.gpus, *pci.switches)}
    return frozenset(found)
