"""What the checks of SXids have in common."""

from __future__ import annotations

import re

from kdoctor.facts import KernelLog, KernelLogEvent
from kdoctor_checks._kernel_log import by_device

_FATAL = re.compile(r"(?<!non-)(?<!non )\bfatal\b", re.IGNORECASE)


def sxids(log: KernelLog) -> dict[str, list[KernelLogEvent]]:
    """The SXids of each NVSwitch, by its name in reports."""
    devices = by_device(event for event in log.events if event.kind == "sxid")
    return {f"NVSwitch at {bus_id}" if bus_id else "an NVSwitch": events for bus_id, events in devices.items()}


def is_fatal(event: KernelLogEvent) -> bool:
    """Whether the line calls the error fatal; ``Non-fatal`` it calls the others."""
    return bool(_FATAL.search(event.text))
