"""Shared by checks of the kernel log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Remedy, Rollback
from kdoctor.text.lists import counted

LOG_UNREAD = NotApplicable(reason="the kernel log was not read (see driver.kernel-log)")

XIDS_OF_FAILURES = {
    48: "double-bit ECC error",
    64: "row remapping or page retirement failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "GSP firmware timed out",
    120: "GSP firmware failed",
    149: "NVLink failed to come up",
}
"""Xids after which no job should start until the GPU has been reset or inspected.

Source: https://docs.nvidia.com/deploy/xid-errors/ and its catalog.
"""
XID_RECOVERY, XID_REMAPPING = 154, 63
XIDS_OF_APPLICATIONS = {13: "graphics engine exception", 31: "memory page fault", 43: "GPU stopped processing"}
"""Xids that are usually caused by an error in a program."""


def is_failure(event: KernelLogEvent) -> bool:
    """Whether the event is an Xid after which no job should start."""
    if event.kind != "xid":
        return False
    asks = event.code == XID_RECOVERY and (event.recovery or "").strip().lower() != "none"
    return asks or event.code in XIDS_OF_FAILURES


def describe(event: KernelLogEvent) -> str:
    """An event, such as ``Xid 79 (GPU has fallen off the bus)``."""
    if event.kind == "xid" and event.code == XID_RECOVERY:
        return f"Xid 154 (recovery action: {event.recovery or 'not named'})"
    if event.kind == "xid":
        meaning = (XIDS_OF_FAILURES | XIDS_OF_APPLICATIONS).get(event.code or 0)
        return f"Xid {event.code}" + (f" ({meaning})" if meaning else "")
    return {
        "fallen-off-the-bus": "GPU has fallen off the bus",
        "init-failed": "GPU initialization failed",
        "gsp-failed": "GSP firmware failed",
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
    counts = Counter(map(describe, events))
    last = events[-1].text if events else ""
    shown = ", ".join(f"{event} x{times}" if times > 1 else event for event, times in counts.items())
    return f"{shown}; last line: {last!r}"


def log_subject(bus_id: str | None, gpus: Gpus | Unavailable) -> str:
    """The name of the GPU at this address in reports."""
    known = [gpu.subject for gpu in gpus.devices if gpu.bus_id == bus_id] if isinstance(gpus, Gpus) else []
    return known[0] if bus_id and known else f"GPU at {bus_id}" if bus_id else "a GPU without address in the log"


def judge_devices(
    log: KernelLog,
    devices: Mapping[str | None, Sequence[KernelLogEvent]],
    gpus: Gpus | Unavailable,
    *,
    expected: str,
    remedy: Remedy,
    rollback: Rollback,
) -> Iterator[Finding | Evidence]:
    """A finding for each device with events, or evidence that there are none."""
    for bus_id, events in devices.items():
        subject = log_subject(bus_id, gpus)
        yield Finding(subject=subject, observed=summary(events), expected=expected, remedy=remedy, rollback=rollback)
    if not devices:
        yield nothing_logged(log)


def nothing_logged(log: KernelLog) -> Evidence:
    """Evidence that the log has no such event, with the size of the log."""
    reach = {True: ", complete since boot", False: ", incomplete since boot", None: ""}[log.complete]
    return Evidence(
        subject="kernel log", observed=f"no such event in {counted(log.lines, 'line')} of {log.source}{reach}"
    )


def nvidia_addresses(gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The addresses of GPUs and NVSwitches."""
    found = {gpu.bus_id for gpu in gpus.devices if gpu.bus_id} if isinstance(gpus, Gpus) else set()
    if isinstance(pci, PciDevices):
        found |= {device.bus_id for device in (*pci.gpus, *pci.switches)}
    return frozenset(found)
