"""Whether the hardware slows the GPUs down."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.facts.gpus import EVENT_HW_SLOWDOWN
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING, readings, smi
from kdoctor_checks.gpu._clocks import CHILDREN, HARDWARE, lasting, words
from kdoctor_checks.gpu._clocks import clocks as shown


@check("gpu.clocks", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def clocks(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is slowed down by its hardware.

    Why: heat or the power supply's brake halves a GPU's clock or worse. Eight GPUs of a recorded machine ran at 86 of
    1980 MHz, and all else about them looked perfect. One slowed GPU slows every replica. The flag may flash when the
    performance state changes, so that it counts only where it stands in every reading; the flags of heat and of the
    brake count by themselves, since they were seen without their parent.
    Remedy: look at cooling and at the power supplies; a power brake that stays is the supply's or the chassis' doing.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/datacenter/dcgm/2.4/dcgm-api/dcgm-api-field-constants.html
    """
    judged, others = readings(gpus, "clock_event_reasons")
    yield from others
    for gpu in judged:
        found = lasting(gpu) & HARDWARE
        count = len(gpu.clock_event_reasons or ())
        if not count:
            yield Unjudged(subject=gpu.subject, reason="the clocks' event reasons were not read")
        elif found & CHILDREN or (found and count > 1):
            yield _finding(gpu, found)
        elif found & EVENT_HW_SLOWDOWN:
            yield Unjudged(subject=gpu.subject, reason="HW Slowdown in a single reading, where it may be a flash")
        else:
            yield Evidence(subject=gpu.subject, observed=f"{words(lasting(gpu))} in {count} readings{shown(gpu)}")


def _finding(gpu: Gpu, found: int) -> Finding:
    return Finding(
        subject=gpu.subject,
        observed=f"{words(found)}{shown(gpu)}",
        expected="no slowdown by the hardware",
        remedy=Remedy(
            summary="Look at cooling (fans, air flow) and at the power supplies; their log is in the machine's BMC.",
            action=Action.INSPECT_HARDWARE,
            commands=(smi(gpu, "-q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK"), "sudo ipmitool sel list"),
        ),
        rollback=LOOKING,
    )
