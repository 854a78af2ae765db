"""What checks of the kernel's log have in common."""

from __future__ import annotations

from collections.abc import Iterable

from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, NotApplicable

LOG_UNREAD = NotApplicable(reason="the kernel's log was not read; driver.kernel-log says why")

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
"""Xids after which a job should not start before the GPU was reset or looked at.

Source: https://docs.nvidia.com/deploy/xid-errors/ and its catalogue.
"""
XID_RECOVERY, XID_REMAPPING = 154, 63
XIDS_OF_APPLICATIONS = {13: "graphics engine exception", 31: "memory page fault", 43: "GPU stopped processing"}
"""Xids that a program's own error makes, as a rule."""


def is_failure(event: KernelLogEvent) -> bool:
    """Whether the event is an Xid that forbids starting a job."""
    if event.kind != "xid":
        return False
    asks = event.code == XID_RECOVERY and (event.recovery or "").strip().lower() != "none"
    return asks or event.code in XIDS_OF_FAILURES


def describe(event: KernelLogEvent) -> str:
    """An event in a few words."""
    if event.kind == "xid" and event.code == XID_RECOVERY:
        return f"Xid 154 (recovery action: {event.recovery or 'not said'})"
    if event.kind == "xid":
        meaning = (XIDS_OF_FAILURES | XIDS_OF_APPLICATIONS).get(event.code or 0)
        return f"Xid {event.code}" + (f" ({meaning})" if meaning else "")
    return {
        "fallen-off-the-bus": "fallen off the bus",
        "init-failed": "could not be initialised",
        "gsp-failed": "its GSP firmware failed",
    }.get(event.kind, event.kind)


def by_device(events: Iterable[KernelLogEvent]) -> dict[str | None, list[KernelLogEvent]]:
    """Events by the address that they name."""
    found: dict[str | None, list[KernelLogEvent]] = {}
    for event in events:
        found.setdefault(event.bus_id, []).append(event)
    return found


def summary(events: Iterable[KernelLogEvent]) -> str:
    """Each different event once, with how often, and the last line's text."""
    counted: dict[str, int] = {}
    last = ""
    for event in events:
        counted[describe(event)] = counted.get(describe(event), 0) + 1
        last = event.text
    shown = ", ".join(f"{words} x{times}" if times > 1 else words for words, times in counted.items())
    return f"{shown}; last: {last!r}"


def log_subject(bus_id: str | None, gpus: Gpus | Unavailable) -> str:
    """How reports name the GPU of that address."""
    known = [gpu.subject for gpu in gpus.devices if gpu.bus_id == bus_id] if isinstance(gpus, Gpus) else []
    return known[0] if bus_id and known else f"GPU at {bus_id}" if bus_id else "a GPU that the log does not name"


def nothing_logged(log: KernelLog) -> Evidence:
    """That the log holds nothing of the kind, and how much of it there is."""
    reach = {True: ", back to the boot", False: ", not back to the boot", None: ""}[log.complete]
    return Evidence(subject="kernel log", observed=f"nothing in {log.lines} lines of {log.source}{reach}")


def nvidia_addresses(gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> frozenset[str]:
    """The addresses of GPUs and NVSwitches."""
    found = {gpu.bus_id for gpu in gpus.devices if gpu.bus_id} if isinstance(gpus, Gpus) else set()
    if isinstance(pci, PciDevices):
        found |= {device.bus_id for device in (*pci.gpus, *pci.switches)}
    return frozenset(found)
