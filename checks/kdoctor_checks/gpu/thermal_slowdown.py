from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.facts.gpus import EVENT_SW_THERMAL_SLOWDOWN
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import inspect, judge, readings, smi
from kdoctor_checks.gpu._clocks import CHILDREN, clocks, lasting, names, seen


@check("gpu.thermal-slowdown", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def thermal_slowdown(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is thermally throttled or shows transient hardware slowdowns.

    Why: the driver lowers the clocks before the hardware has to. A GPU that is throttled before the job starts will be
    slower during it, and all replicas wait for the slowest. gpu.clocks reports lasting hardware slowdowns.
    Remedy: check fans, air flow and room temperature.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "clock_event_reasons")
    yield from others
    for gpu in judged:
        transient = seen(gpu) & ~lasting(gpu) & CHILDREN
        found = lasting(gpu) & EVENT_SW_THERMAL_SLOWDOWN
        reasons = [names(found)] if found else []
        reasons += [f"transient {names(transient)}"] if transient else []
        observed = f"slowed down ({', '.join(reasons)})" if reasons else "no slowdown"
        yield judge(
            gpu.subject,
            f"{observed}{clocks(gpu)}",
            ok=not found and not transient,
            expected="no thermal or transient hardware slowdown",
            remedy=inspect("Check fans, air flow and room temperature.", smi(gpu, "-q -d PERFORMANCE,TEMPERATURE")),
        )
