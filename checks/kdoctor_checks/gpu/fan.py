from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor_checks._gpus import inspect, judge, readings, smi, unread


@check("gpu.fan", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def fan(gpus: Gpus, *, may_stand_below_c: int = 65) -> Iterator[Outcome]:
    """GPU fans are spinning on hot GPUs.

    Why: a hot card with a stopped fan slows down within minutes of the job's start. Cool cards stop their fans on
    purpose, and server cards have none. nvidia-smi shows "ERR!" for a fan that cannot be read.
    Remedy: check the fan and its cable.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "fan_speed_percent")
    yield from others
    for gpu in judged:
        if gpu.temperature_c is None and not gpu.fan_speed_percent:
            yield unread(gpu, "temperature_c") or Unjudged(subject=gpu.subject, reason="temperature not read")
            continue
        yield judge(
            gpu.subject,
            f"fan at {gpu.fan_speed_percent} %, {gpu.temperature_c} C",
            ok=bool(gpu.fan_speed_percent) or (gpu.temperature_c or 0) < may_stand_below_c,
            expected=f"fan spinning at {may_stand_below_c} C and above",
            remedy=inspect(
                "Check the fan and its cable.",
                smi(gpu, "-q -d TEMPERATURE"),
                smi(gpu, "--query-gpu=fan.speed --format=csv"),
            ),
        )
