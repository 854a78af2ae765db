from collections import Counter
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, judge, readings, smi, span


@check("gpu.equal-power-limits", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def equal_power_limits(gpus: Gpus, *, tolerance_w: float = 1.0) -> Iterator[Outcome]:
    """GPUs of the same model have the same power limit.

    Why: every replica waits for the slowest one. A single GPU with a lower limit slows all of them down.
    Remedy: set the same limit on all GPUs.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://www.tensorflow.org/guide/distributed_training
    """
    judged, others = readings(gpus, "enforced_power_limit_w")
    yield from others
    if len(gpus.devices) == 1:
        yield NotApplicable(reason="only one GPU")
        return
    usual_of = {gpu.index: _usual(gpu, judged) for gpu in judged}
    limit_of = {gpu.index: gpu.enforced_power_limit_w or 0.0 for gpu in judged}
    odd = [gpu for gpu in judged if abs(limit_of[gpu.index] - usual_of[gpu.index]) > tolerance_w]
    for gpu in judged:
        usual, limit = usual_of[gpu.index], limit_of[gpu.index]
        alike = [other for other in odd if usual_of[other.index] == usual]
        yield judge(
            gpu.subject,
            f"power limit is {limit:g} W",
            ok=gpu not in odd,
            expected=f"{usual:g} W, as for most GPUs of this model",
            remedy=Remedy.configure(
                "Set the same limit on all GPUs of the model.", f"sudo {smi(alike, f'-pl {usual:g}', among=gpus)}"
            ),
            brief=f"power limit {span([limit_of[one.index] for one in alike or [gpu]], 'W')}, most have {usual:g} W",
            rollback=Rollback.to("restore the recorded limit", f"sudo {smi(gpu, f'-pl {limit:g}')}"),
        )


def _usual(gpu: Gpu, judged: list[Gpu]) -> float:
    """The most common limit of the GPU's model; the highest one on a tie."""
    limits = Counter(peer.enforced_power_limit_w or 0.0 for peer in judged if peer.name == gpu.name)
    return max(limits, key=lambda limit: (limits[limit], limit))
