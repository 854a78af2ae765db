from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.facts.gpus import EVENT_APPLICATIONS_CLOCKS, EVENT_DISPLAY_CLOCKS, EVENT_SW_POWER_CAP, EVENT_SYNC_BOOST
from kdoctor.model import Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import judge, readings, smi
from kdoctor_checks.gpu._clocks import clocks, lasting, names

_SETTINGS = EVENT_APPLICATIONS_CLOCKS | EVENT_SYNC_BOOST | EVENT_DISPLAY_CLOCKS | EVENT_SW_POWER_CAP


@check("gpu.clocks-limited", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def clocks_limited(gpus: Gpus) -> Iterator[Outcome]:
    """No setting limits a GPU's clocks.

    Why: application clocks, locked clocks and power limits make a GPU slower than it could be. They are usually set on
    purpose, and a busy GPU often runs at its power limit. This only matters when you compare speeds.
    Remedy: reset the clocks to their defaults, unless the limit is intended.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "clock_event_reasons")
    yield from others
    limited = [gpu for gpu in judged if lasting(gpu) & _SETTINGS]
    remedy = Remedy.configure(
        "Reset the clocks to their defaults, unless the limit is intended.",
        f"sudo {smi(limited, '-rac', among=gpus)}",
        f"sudo {smi(limited, '-rgc', among=gpus)}",
        look=(smi(limited, "-q -d CLOCK,POWER", among=gpus),),
    )
    for gpu in judged:
        found = lasting(gpu) & _SETTINGS
        yield judge(
            gpu.subject,
            f"{f'clocks limited by {names(found)}' if found else 'no limiting setting'}{clocks(gpu)}",
            ok=not found,
            expected="no limiting setting",
            remedy=remedy,
            brief=f"clocks limited by {names(found)}",
            rollback=Rollback.irreversible(
                "not possible (the previous clocks are not recorded; write them down first)"
            ),
        )
