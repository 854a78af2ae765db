"""Whether the GPUs are cool enough."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING, answering, smi, unsupported


@check("gpu.temperature", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def temperature(gpus: Gpus, *, least_margin_c: int = 5) -> Iterator[Outcome]:
    """Every GPU is cooler than where it slows itself down.

    Why: a GPU that is hot before the job will slow down under it, and all replicas wait for the slowest. Newer
    families give the margin that is left (T.Limit), whose thresholds are offsets and no temperatures; older ones give
    the temperature at which they slow down.
    Remedy: look at fans, air flow and the room; leave the place beside the card free.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    present = answering(gpus)
    if present and all(map(_tells_nothing, present)):
        yield NotApplicable(reason="the GPUs tell no temperature (as in virtual machines)")
        return
    for gpu in present:
        margin = _margin(gpu)
        if margin is None:
            yield Unjudged(subject=gpu.subject, reason=_why(gpu))
        elif margin >= least_margin_c:
            yield Evidence(subject=gpu.subject, observed=_describe(gpu, margin))
        else:
            yield Finding(
                subject=gpu.subject,
                observed=_describe(gpu, margin),
                expected=f"at least {least_margin_c} °C left",
                remedy=Remedy(
                    summary="Look at fans, air flow and the temperature of the room.",
                    action=Action.INSPECT_HARDWARE,
                    commands=(smi(gpu, "-q -d TEMPERATURE,PERFORMANCE"),),
                ),
                rollback=LOOKING,
            )


_NAMES = ("temperature_margin_c", "temperature_c", "temperature_slowdown_c")


def _tells_nothing(gpu: Gpu) -> bool:
    return all(getattr(gpu, name) is None and unsupported(gpu.errors.get(name)) for name in _NAMES)


def _margin(gpu: Gpu) -> int | None:
    """Degrees left until the GPU slows itself down."""
    if gpu.temperature_margin_c is not None:
        return gpu.temperature_margin_c
    if gpu.temperature_c is not None and gpu.temperature_slowdown_c is not None:
        return gpu.temperature_slowdown_c - gpu.temperature_c
    return None


def _describe(gpu: Gpu, margin: int) -> str:
    now = "" if gpu.temperature_c is None else f"{gpu.temperature_c} °C, "
    return f"{now}{margin} °C below where it slows down"


def _why(gpu: Gpu) -> str:
    said = [
        f"{name.removesuffix('_c').replace('_', ' ')} ({gpu.errors.get(name, 'no reason given')})"
        for name in _NAMES
        if getattr(gpu, name) is None
    ]
    return f"how far it is from slowing down is not told: {', '.join(said)}"
