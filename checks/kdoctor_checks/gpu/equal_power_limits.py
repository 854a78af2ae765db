"""Whether the GPUs of one model may draw the same power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.equal-power-limits", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def equal_power_limits(gpus: Gpus, *, tolerance_w: float = 1.0) -> Iterator[Outcome]:
    """GPUs of one model have one power limit.

    Why: every replica waits for the slowest, so a single GPU with a lower limit slows all of them down, and the
    power that the others may draw is of no use.
    Remedy: set one limit for all.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://www.tensorflow.org/guide/distributed_training
    """
    judged, others = readings(gpus, "enforced_power_limit_w")
    yield from others
    if len(gpus.devices) == 1:
        yield NotApplicable(reason="there is one GPU")
        return
    for gpu in judged:
        usual = _usual(gpu, judged)
        limit = gpu.enforced_power_limit_w or 0.0
        if abs(limit - usual) <= tolerance_w:
            yield Evidence(subject=gpu.subject, observed=f"power limit {limit:g} W")
            continue
        yield Finding(
            subject=gpu.subject,
            observed=f"power limit {limit:g} W",
            expected=f"{usual:g} W, as most GPUs of its model",
            remedy=Remedy(
                summary="Set one limit for all GPUs of the model.",
                action=Action.CONFIGURE,
                commands=(f"sudo {smi(gpu, f'-pl {usual:g}')}",),
            ),
            rollback=Rollback.to("the recorded limit", f"sudo {smi(gpu, f'-pl {limit:g}')}"),
        )


def _usual(gpu: Gpu, judged: list[Gpu]) -> float:
    """The limit that most GPUs of its model have; of several, the highest."""
    counted = Counter(peer.enforced_power_limit_w or 0.0 for peer in judged if peer.name == gpu.name)
    return max(counted, key=lambda limit: (counted[limit], limit))
