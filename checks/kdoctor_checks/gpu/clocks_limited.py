from kdoctor.facts import Gpu
from kdoctor.facts.gpus import EVENT_APPLICATIONS_CLOCKS, EVENT_DISPLAY_CLOCKS, EVENT_SW_POWER_CAP, EVENT_SYNC_BOOST
from kdoctor.model import Remedy, Rollback, Severity
from kdoctor_checks._gpus import smi
from kdoctor_checks.gpu._clocks import clocks, lasting, names
from kdoctor_checks.gpu._flags import gpu_flag

_SETTINGS = EVENT_APPLICATIONS_CLOCKS | EVENT_SYNC_BOOST | EVENT_DISPLAY_CLOCKS | EVENT_SW_POWER_CAP


def _found(gpu: Gpu) -> str:
    found = lasting(gpu) & _SETTINGS
    return f"clocks limited by {names(found)}" if found else "no limiting setting"


@gpu_flag(
    "gpu.clocks-limited",
    "clock_event_reasons",
    severity=Severity.INFO,
    bad=lambda gpu: lasting(gpu) & _SETTINGS,
    expected="no limiting setting",
    remedy=lambda limited, gpus: Remedy.configure(
        "Reset the clocks to their defaults, unless the limit is intended.",
        f"sudo {smi(limited, '-rac', among=gpus)}",
        f"sudo {smi(limited, '-rgc', among=gpus)}",
        look=(smi(limited, "-q -d CLOCK,POWER", among=gpus),),
    ),
    brief=_found,
    rollback=Rollback.irreversible("not possible (the previous clocks are not recorded; write them down first)"),
)
def clocks_limited(gpu: Gpu) -> str:
    """No setting limits a GPU's clocks.

    Why: application clocks, locked clocks and power limits make a GPU slower than it could be. They are usually set on
    purpose, and a busy GPU often runs at its power limit. This only matters when you compare speeds.
    Remedy: reset the clocks to their defaults, unless the limit is intended.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    return f"{_found(gpu)}{clocks(gpu)}"
