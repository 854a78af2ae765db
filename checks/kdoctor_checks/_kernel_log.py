"""Helpers for checks of the kernel log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, NotApplicable

LOG_UNREAD = NotApplicable(reason="the kernel log was not read (see driver.kernel-log)")

XIDS_OF_FAILURES = {
    48: "double bit ECC error",
    64: "row remapping or page retirement failed",
    74: "NVLink error",
    79: "fallen off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "GSP firmware timed out",
    120: "GSP firmware failed",
    149: "NVLink failed to come up",
}
"""Xids after which the GPU must be reset or inspected before a job starts.

Source: https://docs.nvidia.com/deploy/xid-errors/ and its catalogue.
"""
XID_RECOVERY, XID_REMAPPING = 154, 63
XIDS_OF_APPLICATIONS = {13: "graphics engine exception", 31: "memory page fault", 43: "GPU stopped processing"}
"""Xids that are usually caused by the program."""


def is_failure(event: KernelLogEvent) -> bool:
    """Whether the event is an Xid after which a job must not start."""
    if event.kind != "xid":
        return False
    asks = event.code == XID_RECOVERY and (event.recovery or "").strip().lower() != "none"
    return asks or event.code in XIDS_OF_FAILURES


def describe(event: KernelLogEvent) -> str:
    """The event as a short text."""
    if event.kind == "xid" and event.code == XID_RECOVERY:
        return f"Xid 154 (recovery action: {event.recovery or 'unknown'})"
    if event.kind == "xid":
        meaning = (XIDS_OF_FAILURES | XIDS_OF_APPLICATIONS).get(event.code or 0)
        return f"Xid {event.code}" + (f" ({meaning})" if meaning else "")
    return {
        "fallen-off-the-bus": "fallen off the bus",
        "init-failed": "could not be initialized",
        "gsp-failed": "GSP firmware failed",
    }.get(event.kind, event.kind)


def by_device(events: Iterable[KernelLogEvent]) -> dict[str | None, list[KernelLogEvent]]:
    """The events by the PCI address that they name."""
    found: dict[str | None, list[KernelLogEvent]] = {}
    for event in events:
        found.setdefault(event.bus_id, []).append(event)
    return found


def summary(events: Iterable[KernelLogEvent]) -> str:
    """Each distinct event with its count, and the text of the last one."""
    found = list(events)
    counts = Counter(map(describe, found))
    shown = ", ".join(f"{text} x{times}" if times > 1 else text for text, times in counts.items())
    return f"{shown}; last: {found[-1].text if found else ''!r}"


def log_subject(bus_id: str | None, gpus: Gpus | Unavailable) -> str:
    """The subject for the GPU at that address."""
    known = [gpu.subject for gpu in gpus.devices if gpu.bus_id == bus_id] if isinstance(gpus, Gpus) else []
    return known[0] if bus_id and known else f"GPU at {bus_id}" if bus_id else "GPU without an address in the log"


def nothing_logged(log: KernelLog) -> Evidence:
    """The evidence that the log has no such event."""
    reach = {True: " since boot", False: ", not complete since boot", None: ""}[log.complete]
    return Evidence(subject="kernel log", observed=f"no such event in {log.lines} lines of {log.source}{reach}")


def nvidia_addresses(gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The PCI addresses of GPUs and NVSwitches."""
    found = {gpu.bus_id for gpu in gpus.devices if gpu.bus_id} if isinstance(gpus, Gpus) else set()
    if isinstance(pci, PciDevices):
        found |= {device.bus_id for device in (*pci.gpus, *pci.switches)}
    return frozenset(found)
