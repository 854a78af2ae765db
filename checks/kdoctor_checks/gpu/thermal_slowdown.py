from kdoctor.facts import Gpu
from kdoctor.facts.gpus import EVENT_HW_THERMAL_SLOWDOWN, EVENT_SW_THERMAL_SLOWDOWN
from kdoctor.model import Remedy, Severity
from kdoctor_checks._gpus import smi
from kdoctor_checks.gpu._clocks import CHILDREN, clocks, lasting, names, seen
from kdoctor_checks.gpu._flags import gpu_flag


def _reasons(gpu: Gpu) -> list[str]:
    transient = seen(gpu) & ~lasting(gpu) & CHILDREN
    found = lasting(gpu) & EVENT_SW_THERMAL_SLOWDOWN
    return ([names(found)] if found else []) + ([f"transient {names(transient)}"] if transient else [])


def _explained_by(gpu: Gpu) -> tuple[str, ...]:
    """A stopped fan explains the heat. A lasting thermal slowdown by the hardware is the same heat."""
    hardware = ("gpu.clocks",) if lasting(gpu) & EVENT_HW_THERMAL_SLOWDOWN else ()
    return (*hardware, *(("gpu.fan",) if gpu.fan_speed_percent == 0 else ()))


def _observed(gpu: Gpu) -> str:
    reasons = _reasons(gpu)
    return f"slowed down ({', '.join(reasons)})" if reasons else "no slowdown"


@gpu_flag(
    "gpu.thermal-slowdown",
    "clock_event_reasons",
    severity=Severity.WARNING,
    bad=_reasons,
    expected="no thermal or transient hardware slowdown",
    remedy=lambda slowed, gpus: Remedy.inspect(
        "Check fans, air flow and room temperature.", smi(slowed, "-q -d PERFORMANCE,TEMPERATURE", among=gpus)
    ),
    brief=_observed,
    explained_by=_explained_by,
)
def thermal_slowdown(gpu: Gpu) -> str:
    """No GPU is thermally throttled or shows transient hardware slowdowns.

    Why: the driver lowers the clocks before the hardware has to. A GPU that is throttled before the job starts will be
    slower during it, and all replicas wait for the slowest. gpu.clocks reports lasting hardware slowdowns.
    Remedy: check fans, air flow and room temperature.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    return f"{_observed(gpu)}{clocks(gpu)}"
