from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.facts.gpus import EVENT_HW_THERMAL_SLOWDOWN, EVENT_SW_THERMAL_SLOWDOWN
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import DRIVER, answering, field_label, judge, not_answering, smi, span, unsupported
from kdoctor_checks.gpu._clocks import lasting


@check("gpu.temperature", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def temperature(gpus: Gpus, *, least_margin_c: int = 5) -> Iterator[Outcome]:
    """GPU temperatures are well below the throttling threshold.

    Why: a GPU that is hot before the job will be throttled during it, and all replicas wait for the slowest. Newer GPUs
    report the remaining margin (T.Limit), with thresholds as offsets. Older ones report the highest temperature for
    work, from which the clocks are lowered, and the one at which the GPU slows down.
    Remedy: check fans, air flow and room temperature, and leave the slot next to the card free.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    present = answering(gpus)
    if present and all(map(_reports_nothing, present)):
        yield NotApplicable(reason="the GPUs report no temperature (usual in virtual machines)")
        return
    yield from not_answering(gpus)
    hot = [gpu for gpu in present if (found := _margin(gpu)) is not None and found < least_margin_c]
    remedy = Remedy.inspect(
        "Check fans, air flow and room temperature.", smi(hot, "-q -d TEMPERATURE,PERFORMANCE", among=gpus)
    )
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
            remedy=remedy,
            brief=_brief(margin, [found for gpu in hot if (found := _margin(gpu)) is not None]),
            explained_by=_explained_by(gpu),
        )


_NAMES = ("temperature_margin_c", "temperature_c", "temperature_slowdown_c")


def _reports_nothing(gpu: Gpu) -> bool:
    unread = all(getattr(gpu, name) is None and unsupported(gpu.errors.get(name)) for name in _NAMES)
    return unread and not gpu.owes("temperature_c")


def _margin(gpu: Gpu) -> int | None:
    """Degrees until the GPU is throttled."""
    if gpu.temperature_margin_c is not None:
        return gpu.temperature_margin_c
    limits = [limit for limit in (gpu.temperature_operating_max_c, gpu.temperature_slowdown_c) if limit is not None]
    return min(limits) - gpu.temperature_c if limits and gpu.temperature_c is not None else None


def _brief(margin: int, margins: Sequence[int]) -> str:
    """The margin, with the range over the hot GPUs on the same side of the threshold."""
    if margin < 0:
        return "above the throttling threshold"
    return f"{span([other for other in margins if other >= 0] or [margin], 'C')} below the throttling threshold"


def _explained_by(gpu: Gpu) -> tuple[str, ...]:
    """What is the same heat, if the facts say so: a stopped fan, or a thermal slowdown."""
    lasts = lasting(gpu)
    return (
        *(("gpu.fan",) if gpu.fan_speed_percent == 0 else ()),
        *(("gpu.clocks",) if lasts & EVENT_HW_THERMAL_SLOWDOWN else ()),
        *(("gpu.thermal-slowdown",) if lasts & EVENT_SW_THERMAL_SLOWDOWN else ()),
    )


def _why(gpu: Gpu) -> str:
    unread = [
        f"{field_label(name)} ({gpu.errors.get(name, 'no reason given')})"
        for name in _NAMES
        if getattr(gpu, name) is None
    ]
    return f"the margin to the throttling threshold was not read: {', '.join(unread)}"
