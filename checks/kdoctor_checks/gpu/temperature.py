from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._gpus import answering, field_label, inspect, judge, smi, unsupported


@check("gpu.temperature", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def temperature(gpus: Gpus, *, least_margin_c: int = 5) -> Iterator[Outcome]:
    """GPU temperatures are well below the throttling threshold.

    Why: a GPU that is hot before the job will be throttled during it, and all replicas wait for the slowest. Newer GPUs
    report the remaining margin (T.Limit), with thresholds as offsets. Older ones report the temperature at which they
    slow down.
    Remedy: check fans, air flow and room temperature, and leave the slot next to the card free.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    present = answering(gpus)
    if present and all(map(_reports_nothing, present)):
        yield NotApplicable(reason="the GPUs report no temperature (usual in virtual machines)")
        return
    for gpu in present:
        margin = _margin(gpu)
        if margin is None:
            yield Unjudged(subject=gpu.subject, reason=_why(gpu))
            continue
        now = "" if gpu.temperature_c is None else f"{gpu.temperature_c} C, "
        yield judge(
            gpu.subject,
            f"{now}{abs(margin)} C {'above' if margin < 0 else 'below'} the throttling threshold",
            ok=margin >= least_margin_c,
            expected=f"at least {least_margin_c} C below the threshold",
            remedy=inspect("Check fans, air flow and room temperature.", smi(gpu, "-q -d TEMPERATURE,PERFORMANCE")),
        )


_NAMES = ("temperature_margin_c", "temperature_c", "temperature_slowdown_c")


def _reports_nothing(gpu: Gpu) -> bool:
    return all(getattr(gpu, name) is None and unsupported(gpu.errors.get(name)) for name in _NAMES)


def _margin(gpu: Gpu) -> int | None:
    """Degrees until the GPU is throttled."""
    if gpu.temperature_margin_c is not None:
        return gpu.temperature_margin_c
    if gpu.temperature_c is not None and gpu.temperature_slowdown_c is not None:
        return gpu.temperature_slowdown_c - gpu.temperature_c
    return None


def _why(gpu: Gpu) -> str:
    unread = [
        f"{field_label(name)} ({gpu.errors.get(name, 'no reason given')})"
        for name in _NAMES
        if getattr(gpu, name) is None
    ]
    return f"the margin to the throttling threshold was not read: {', '.join(unread)}"
