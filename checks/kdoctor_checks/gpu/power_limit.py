from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor_checks._gpus import configure, judge, readings, smi


@check("gpu.power-limit", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def power_limit(gpus: Gpus, *, least_share: float = 1.0) -> Iterator[Outcome]:
    """GPU power limits are not below the default.

    Why: a lower limit makes long steps a few percent slower. It is often set on purpose, for cooling or efficiency, so
    this is only a note. Limits that differ between GPUs are a warning (gpu.equal-power-limits).
    Remedy: reset the limit to the default, unless the lower limit is intended.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "enforced_power_limit_w", "default_power_limit_w")
    yield from others
    for gpu in judged:
        limit, default = gpu.enforced_power_limit_w or 0.0, gpu.default_power_limit_w or 0.0
        yield judge(
            gpu.subject,
            f"power limit is {limit:g} W (default {default:g} W)",
            ok=limit >= least_share * default,
            expected=f"at least {least_share * default:g} W",
            remedy=configure(
                "Reset the limit to the default, unless the lower limit is intended.",
                f"sudo {smi(gpu, f'-pl {default:g}')}",
            ),
            rollback=Rollback.to("restore the recorded limit", f"sudo {smi(gpu, f'-pl {limit:g}')}"),
        )
