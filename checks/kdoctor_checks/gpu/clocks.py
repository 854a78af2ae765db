from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.facts.gpus import EVENT_HW_SLOWDOWN
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, readings, smi
from kdoctor_checks.gpu._clocks import CHILDREN, HARDWARE, cause, held, lasting, names
from kdoctor_checks.gpu._clocks import clocks as shown


@check("gpu.clocks", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def clocks(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is slowed down by its hardware.

    Why: overheating or the power brake cuts a GPU's clock in half or worse. On one recorded machine, eight GPUs ran at
    86 of 1980 MHz and looked healthy otherwise. One slow GPU slows every replica. The slowdown flag can be set briefly
    when the performance state changes, so it counts only if it is set in every reading. The thermal and power brake
    flags also count without it.
    Remedy: check cooling and power supplies. A permanent power brake comes from the power supply or the chassis.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/datacenter/dcgm/2.4/dcgm-api/dcgm-api-field-constants.html
    """
    judged, others = readings(gpus, "clock_event_reasons")
    yield from others
    slowed = [gpu for gpu in judged if _counts(gpu)]
    for gpu in judged:
        found = lasting(gpu) & HARDWARE
        count = len(gpu.clock_event_reasons or ())
        if not count:
            yield Unjudged(subject=gpu.subject, reason="the clock event reasons were not read")
        elif gpu in slowed:
            alike = [other for other in slowed if cause(lasting(other) & HARDWARE) == cause(found)]
            yield Finding(
                subject=gpu.subject,
                observed=f"slowed down by hardware ({names(found)}){shown(gpu)}",
                brief=held(alike, found),
                expected="no hardware slowdown",
                remedy=_remedy(slowed, gpus),
            )
        elif found & EVENT_HW_SLOWDOWN:
            yield Unjudged(subject=gpu.subject, reason="HW Slowdown in a single reading, which may be transient")
        else:
            active = names(lasting(gpu))
            yield Evidence(
                subject=gpu.subject, observed=f"event reasons: {active} ({counted(count, 'reading')}){shown(gpu)}"
            )


def _counts(gpu: Gpu) -> bool:
    """Whether the slowdown lasts: a child flag, or the parent flag in more than one reading."""
    found = lasting(gpu) & HARDWARE
    return bool(found & CHILDREN) or (bool(found) and len(gpu.clock_event_reasons or ()) > 1)


def _remedy(slowed: Sequence[Gpu], gpus: Gpus) -> Remedy:
    return Remedy.inspect(
        "Check cooling (fans, air flow) and power supplies, and read the event log of the BMC.",
        "sudo ipmitool sel list",
        smi(slowed, "-q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK", among=gpus),
    )
