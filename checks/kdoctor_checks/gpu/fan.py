"""Whether the fans of hot GPUs turn."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import LOOKING, readings, smi, unread


@check("gpu.fan", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def fan(gpus: Gpus, *, may_stand_below_c: int = 65) -> Iterator[Outcome]:
    """The fan of every hot GPU that has one turns.

    Why: a card whose fan stands while it is hot slows down within minutes of the job's start. Cool cards stop their
    fans on purpose, and server cards have none. nvidia-smi shows "ERR!" for a fan that cannot be read.
    Remedy: look at the fan and its cable.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "fan_speed_percent")
    yield from others
    for gpu in judged:
        words = f"fan at {gpu.fan_speed_percent} %, {gpu.temperature_c} °C"
        if gpu.temperature_c is None and not gpu.fan_speed_percent:
            yield unread(gpu, "temperature_c") or Unjudged(subject=gpu.subject, reason="temperature not read")
            continue
        if gpu.fan_speed_percent or (gpu.temperature_c or 0) < may_stand_below_c:
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected=f"a fan that turns from {may_stand_below_c} °C on",
            remedy=Remedy(
                summary="Look at the fan and its cable.",
                action=Action.INSPECT_HARDWARE,
                commands=(smi(gpu, "-q -d TEMPERATURE"), smi(gpu, "--query-gpu=fan.speed --format=csv")),
            ),
            rollback=LOOKING,
        )
