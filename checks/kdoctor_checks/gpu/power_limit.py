"""Whether the GPUs may draw the power that they are made for."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.power-limit", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def power_limit(gpus: Gpus, *, least_share: float = 1.0) -> Iterator[Outcome]:
    """No GPU's power limit is below its default.

    Why: a lower limit makes long steps slower by some percent. It is often set on purpose, for the room's cooling or
    for efficiency, hence no more than a note; a limit that differs between GPUs is a warning
    (gpu.equal-power-limits).
    Remedy: return to the default limit, unless the lower one is meant.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "enforced_power_limit_w", "default_power_limit_w")
    yield from others
    for gpu in judged:
        limit, default = gpu.enforced_power_limit_w or 0.0, gpu.default_power_limit_w or 0.0
        words = f"power limit {limit:g} W, by default {default:g} W"
        if limit >= least_share * default:
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected=f"at least {least_share * default:g} W",
            remedy=Remedy(
                summary="Return to the default limit, unless the lower one is meant.",
                action=Action.CONFIGURE,
                commands=(f"sudo {smi(gpu, f'-pl {default:g}')}",),
            ),
            rollback=Rollback.to("the recorded limit", f"sudo {smi(gpu, f'-pl {limit:g}')}"),
        )
