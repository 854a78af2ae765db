"""What the checks of clocks have in common."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from kdoctor.facts import Gpu
from kdoctor.facts.gpus import EVENT_HW_POWER_BRAKE, EVENT_HW_SLOWDOWN, EVENT_HW_THERMAL_SLOWDOWN, EVENT_NAMES

HARDWARE = EVENT_HW_SLOWDOWN | EVENT_HW_THERMAL_SLOWDOWN | EVENT_HW_POWER_BRAKE
"""The parent flag and its two children: seen on recorded machines, the children may stand without the parent."""
CHILDREN = EVENT_HW_THERMAL_SLOWDOWN | EVENT_HW_POWER_BRAKE


def lasting(gpu: Gpu) -> int:
    """The reasons that stand in every reading."""
    return reduce(and_, gpu.clock_event_reasons) if gpu.clock_event_reasons else 0


def seen(gpu: Gpu) -> int:
    """The reasons that stand in any reading."""
    return reduce(or_, gpu.clock_event_reasons or (), 0)


def words(mask: int) -> str:
    """The reasons by name."""
    return ", ".join(name for bit, name in EVENT_NAMES.items() if mask & bit) or "none"


def clocks(gpu: Gpu) -> str:
    """The SM clock and its maximum, where both were read."""
    if gpu.clock_sm_mhz is None or gpu.clock_sm_max_mhz is None:
        return ""
    return f", SM clock {gpu.clock_sm_mhz} of {gpu.clock_sm_max_mhz} MHz"
