from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings, smi, span


@check("gpu.power-limit", severity=Severity.INFO, needs_gpus=True, requires=DRIVER)
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
    defaults = {gpu.index: gpu.default_power_limit_w or 0.0 for gpu in judged}
    lowered = [gpu for gpu in judged if (gpu.enforced_power_limit_w or 0.0) < least_share * defaults[gpu.index]]
    for gpu in judged:
        limit, default = gpu.enforced_power_limit_w or 0.0, defaults[gpu.index]
        alike = [other for other in lowered if defaults[other.index] == default]
        yield judge(
            gpu.subject,
            f"power limit is {limit:g} W (default {default:g} W)",
            ok=gpu not in lowered,
            expected=f"at least {least_share * default:g} W",
            remedy=Remedy.configure(
                "Reset the limit to the default, unless the lower limit is intended.",
                f"sudo {smi(alike, f'-pl {default:g}', among=gpus)}",
            ),
            brief=f"power limit {span([other.enforced_power_limit_w or 0 for other in alike or [gpu]], 'W')}, "
            f"default {default:g} W",
            explained_by=("gpu.equal-power-limits",),
            rollback=Rollback.to("restore the recorded limit", f"sudo {smi(gpu, f'-pl {limit:g}')}"),
        )
