"""Whether settings keep the GPUs' clocks down."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.facts.gpus import EVENT_APPLICATIONS_CLOCKS, EVENT_DISPLAY_CLOCKS, EVENT_SW_POWER_CAP, EVENT_SYNC_BOOST
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi
from kdoctor_checks.gpu._clocks import clocks, lasting, words

_SETTINGS = EVENT_APPLICATIONS_CLOCKS | EVENT_SYNC_BOOST | EVENT_DISPLAY_CLOCKS | EVENT_SW_POWER_CAP


@check("gpu.clocks-limited", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def clocks_limited(gpus: Gpus) -> Iterator[Outcome]:
    """No setting keeps a GPU's clocks down.

    Why: application clocks, locked clocks and the power limit make a GPU slower than it could be. They are set on
    purpose as a rule, and a busy GPU is at its power limit by nature: a note for whoever compares speeds.
    Remedy: return to the default clocks, unless the setting is meant.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "clock_event_reasons")
    yield from others
    for gpu in judged:
        found = lasting(gpu) & _SETTINGS
        if not found:
            yield Evidence(subject=gpu.subject, observed=f"no setting{clocks(gpu)}")
            continue
        yield Finding(
            subject=gpu.subject,
            observed=f"{words(found)}{clocks(gpu)}",
            expected="no setting",
            remedy=Remedy(
                summary="Return to the default clocks, unless the setting is meant.",
                action=Action.CONFIGURE,
                commands=(smi(gpu, "-q -d CLOCK,POWER"), f"sudo {smi(gpu, '-rac')}", f"sudo {smi(gpu, '-rgc')}"),
            ),
            rollback=Rollback.irreversible("which clocks were set is not among the facts; note them before"),
        )
