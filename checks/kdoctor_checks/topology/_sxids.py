"""Shared by the checks of SXids."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, NotApplicable, Remedy, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks import _catalog
from kdoctor_checks._kernel_log import by_device
from kdoctor_checks._kernel_log import nothing_logged as nothing_logged_of_gpus

Class = Literal["fatal", "lesser", "unclassified"]

_FATAL_ROWS = {"fatal", "always-fatal"}
_UNHANDLED = 10003
"""Always fatal, although the guide lists it among the notable ones."""
_FATAL = re.compile(r"(?<!non-)(?<!non )\bfatal\b", re.IGNORECASE)


def sxids(log: KernelLog) -> dict[str, list[KernelLogEvent]]:
    """The SXids by NVSwitch, as reports name it."""
    devices = by_device(event for event in log.events if event.kind == "sxid")
    return {f"NVSwitch at {bus_id}" if bus_id else "an NVSwitch": events for bus_id, events in devices.items()}


def nothing_logged(
    log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable, wanted: str
) -> Evidence | NotApplicable | Unjudged:
    """Evidence that the log has no such line, if the machine has an NVSwitch that could log it."""
    if isinstance(pci, PciDevices) and not pci.switches:
        return NotApplicable(reason="no NVSwitch among the PCI devices")
    return nothing_logged_of_gpus(log, gpus, pci, wanted, sign="nvswitch")


def classify(event: KernelLogEvent) -> Class:
    """Whether the links through the switch are down, by the guide and by the line. A code in neither is unclassified.

    Lines of the same SXid that only give numbers ("Severity 5 Engine instance 00", "Data {...}") belong to the line
    before them.
    """
    row = _catalog.sxids().get(event.code or 0)
    if _FATAL.search(event.text) or (row and (row.severity in _FATAL_ROWS or row.code == _UNHANDLED)):
        return "fatal"
    return "lesser" if row else "unclassified"


def codes(events: Sequence[KernelLogEvent]) -> str:
    """The codes: ``SXid 12028``."""
    return f"SXid {some(sorted({str(event.code) for event in events}))}"


def guided(events: Sequence[KernelLogEvent], remedy: Remedy) -> Remedy:
    """The fix, after what the guide asks for other than a restart: cooling, mechanical connections."""
    rows = filter(None, (_catalog.sxids().get(event.code or 0) for event in events))
    first = dict.fromkeys(f"{row.recovery}. " for row in rows if row.recovery and "estart" not in row.recovery)
    return replace(remedy, summary="".join(first) + remedy.summary)


def summary(events: Sequence[KernelLogEvent]) -> str:
    """The codes with their meaning, what the guide recommends, and the text of the last line."""
    rows = [row for code in sorted({event.code or 0 for event in events}) if (row := _catalog.sxids().get(code))]
    meanings = "".join(f" ({row.meaning})" for row in rows) if len(rows) == 1 else ""
    recovery = next((f"; recovery: {row.recovery}" for row in rows if row.recovery), "")
    return f"{codes(events)}{meanings}{recovery}; last line: {events[-1].text!r}"
