from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Remedy, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings, smi, span, unread


@check("gpu.fan", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
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
    stopped = [gpu for gpu in judged if not gpu.fan_speed_percent and (gpu.temperature_c or 0) >= may_stand_below_c]
    remedy = Remedy.inspect(
        "Check the fan and its cable.",
        smi(stopped, "-q -d TEMPERATURE", among=gpus),
        smi(stopped, "--query-gpu=fan.speed --format=csv", among=gpus),
    )
    for gpu in judged:
        problem = unread(gpu, "temperature_c")
        if problem and not gpu.fan_speed_percent:
            yield problem
            continue
        yield judge(
            gpu.subject,
            f"fan at {gpu.fan_speed_percent} %, {gpu.temperature_c} C",
            ok=gpu not in stopped,
            expected=f"fan spinning at {may_stand_below_c} C and above",
            remedy=remedy,
            brief=f"fan stopped at {span([other.temperature_c or 0 for other in stopped or [gpu]], 'C')}",
        )
