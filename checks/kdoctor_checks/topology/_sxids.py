"""Shared by the checks of SXids."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdoctor.facts import Gpus, KernelLog, KernelLogEvent, PciDevices, Unavailable
from kdoctor.model import Evidence, NotApplicable
from kdoctor.text.lists import some
from kdoctor_checks._kernel_log import by_device
from kdoctor_checks._kernel_log import nothing_logged as nothing_logged_of_gpus

_FATAL = re.compile(r"(?<!non-)(?<!non )\bfatal\b", re.IGNORECASE)


def sxids(log: KernelLog) -> dict[str, list[KernelLogEvent]]:
    """The SXids by NVSwitch, as reports name it."""
    devices = by_device(event for event in log.events if event.kind == "sxid")
    return {f"NVSwitch at {bus_id}" if bus_id else "an NVSwitch": events for bus_id, events in devices.items()}


def nothing_logged(
    log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable, wanted: str
) -> Evidence | NotApplicable:
    """Evidence that the log has no such line, if the machine has an NVSwitch that could log it."""
    if isinstance(pci, PciDevices) and pci.gpus and not pci.switches:
        return NotApplicable(reason="no NVSwitch among the PCI devices")
    return nothing_logged_of_gpus(log, gpus, pci, wanted)


def is_fatal(event: KernelLogEvent) -> bool:
    """Whether the line calls the error fatal, not ``Non-fatal``."""
    return bool(_FATAL.search(event.text))


def codes(events: Sequence[KernelLogEvent]) -> str:
    """The codes: ``SXid 12028``."""
    return f"SXid {some(sorted({str(event.code) for event in events}))}"


def summary(events: Sequence[KernelLogEvent]) -> str:
    """The codes, and the text of the last line."""
    return f"{codes(events)}; last line: {events[-1].text!r}"
