"""Shared by the checks of clocks."""

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from kdoctor.facts import Gpu
from kdoctor.facts.gpus import EVENT_HW_POWER_BRAKE, EVENT_HW_SLOWDOWN, EVENT_HW_THERMAL_SLOWDOWN, EVENT_NAMES

HARDWARE = EVENT_HW_SLOWDOWN | EVENT_HW_THERMAL_SLOWDOWN | EVENT_HW_POWER_BRAKE
"""The parent flag and its two children. On some recorded machines, a child is set without the parent."""
CHILDREN = EVENT_HW_THERMAL_SLOWDOWN | EVENT_HW_POWER_BRAKE


def lasting(gpu: Gpu) -> int:
    """The reasons that are set in every reading."""
    return reduce(and_, gpu.clock_event_reasons) if gpu.clock_event_reasons else 0


def seen(gpu: Gpu) -> int:
    """The reasons that are set in any reading."""
    return reduce(or_, gpu.clock_event_reasons or (), 0)


def names(mask: int) -> str:
    """The names of the reasons, as nvidia-smi writes them."""
    return ", ".join(name for bit, name in EVENT_NAMES.items() if mask & bit) or "none"


def cause(mask: int) -> str:
    """The hardware reason, without the parent flag where a child explains it."""
    if mask & CHILDREN == CHILDREN:
        return "hardware (heat and power brake)"
    return names(mask & CHILDREN or mask)


def held(gpus: Sequence[Gpu], mask: int) -> str:
    """The clocks of GPUs that are slowed down for this reason: ``held at 84 to 90 of 1980 MHz by ...``."""
    now = [gpu.clock_sm_mhz for gpu in gpus if gpu.clock_sm_mhz is not None]
    most = {gpu.clock_sm_max_mhz for gpu in gpus}
    (top,) = most if len(most) == 1 else (None,)
    if top is None or len(now) < len(gpus):
        return f"slowed down by {cause(mask)}"
    low, high = min(now), max(now)
    return f"held at {low if low == high else f'{low} to {high}'} of {top} MHz by {cause(mask)}"


def clocks(gpu: Gpu) -> str:
    """The SM clock and its maximum, if both were read."""
    if gpu.clock_sm_mhz is None or gpu.clock_sm_max_mhz is None:
        return ""
    return f", SM clock {gpu.clock_sm_mhz} of {gpu.clock_sm_max_mhz} MHz"
