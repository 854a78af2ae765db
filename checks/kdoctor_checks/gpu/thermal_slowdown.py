"""Whether the driver slows the GPUs down because of heat."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.facts.gpus import EVENT_SW_THERMAL_SLOWDOWN
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING, readings, smi
from kdoctor_checks.gpu._clocks import CHILDREN, clocks, lasting, seen, words


@check("gpu.thermal-slowdown", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def thermal_slowdown(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is slowed down by the driver because of heat, and none by the hardware for moments.

    Why: the driver lowers the clocks before the hardware must. A GPU that is slowed down before the job starts is
    slower under it, and all replicas wait for the slowest. A slowdown by the hardware that lasts is told by
    gpu.clocks.
    Remedy: look at fans, air flow and the temperature of the room.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "clock_event_reasons")
    yield from others
    for gpu in judged:
        passing = seen(gpu) & ~lasting(gpu) & CHILDREN
        found = lasting(gpu) & EVENT_SW_THERMAL_SLOWDOWN
        if not found and not passing:
            yield Evidence(subject=gpu.subject, observed=f"{words(lasting(gpu))}{clocks(gpu)}")
            continue
        moments = f"{words(passing)} for moments" if passing else ""
        yield Finding(
            subject=gpu.subject,
            observed=", ".join(filter(None, (words(found) if found else "", moments))) + clocks(gpu),
            expected="no slowdown because of heat",
            remedy=Remedy(
                summary="Look at fans, air flow and the temperature of the room.",
                action=Action.INSPECT_HARDWARE,
                commands=(smi(gpu, "-q -d PERFORMANCE,TEMPERATURE"),),
            ),
            rollback=LOOKING,
        )
