"""Shared by the checks of SXids."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdoctor.facts import KernelLog, KernelLogEvent
from kdoctor_checks._kernel_log import by_device

_FATAL = re.compile(r"(?<!non-)(?<!non )\bfatal\b", re.IGNORECASE)


def sxids(log: KernelLog) -> dict[str, list[KernelLogEvent]]:
    """The SXids by NVSwitch, as reports name it."""
    devices = by_device(event for event in log.events if event.kind == "sxid")
    return {f"NVSwitch at {bus_id}" if bus_id else "an NVSwitch": events for bus_id, events in devices.items()}


def is_fatal(event: KernelLogEvent) -> bool:
    """Whether the line calls the error fatal, not ``Non-fatal``."""
    return bool(_FATAL.search(event.text))


def summary(events: Sequence[KernelLogEvent]) -> str:
    """The codes, and the text of the last line."""
    return f"SXid {', '.join(sorted({str(event.code) for event in events}))}; last line: {events[-1].text!r}"
