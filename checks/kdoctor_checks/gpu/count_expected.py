"""Whether there are as many GPUs as the job was planned for."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Assumptions, Evidence, Finding, GpuAssumption, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._gpus import NOTHING_CHANGED, RESET_NEEDED, answering


@check(
    "gpu.count-expected",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["gpu.responding", "gpu.visible-to-driver"],
    judges=("gpus.count",),
)
def count_expected(gpus: Gpus, assumptions: Assumptions) -> Iterator[Outcome]:
    """The driver lists as many answering GPUs as the checklist expects (without a number: at least one).

    Why: the global batch, the learning rate and the time that was booked follow from the number of replicas. A job
    on fewer GPUs trains, and trains something else.
    Remedy: ask the scheduler or the container runtime for the right number, or look for the GPU that is lost.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    wanted = assumptions.gpus or GpuAssumption()
    found = len(answering(gpus))
    gone = [gpu.subject for gpu in gpus.devices if gpu not in answering(gpus)]
    observed = f"{found} GPUs answer" + (f"; lost: {', '.join(gone)}" if gone else "")
    if gpus.state != "ready" or gpus.count is None or gpus.count > len(gpus.devices):
        said = f"it counts {gpus.count} and lists {len(gpus.devices)}"
        reason = gpus.error or (gpus.errors.get("count") if gpus.count is None else None) or said
        yield Unjudged(subject="GPUs", reason=f"NVML does not list them all: {reason}")
        return
    exact, least = wanted.count, wanted.at_least
    expected = f"exactly {exact}" if exact is not None else f"at least {1 if least is None else least}"
    good = found == exact if exact is not None else found >= (1 if least is None else least)
    if good:
        yield Evidence(subject="GPUs", observed=f"{observed} ({expected} expected)")
        return
    yield Finding(
        subject="GPUs",
        observed=observed,
        expected=expected,
        remedy=RESET_NEEDED if gone else _other_machine(),
        rollback=NOTHING_CHANGED,
    )


def _other_machine() -> Remedy:
    return Remedy(
        summary="Ask the scheduler or the container runtime for the right number, look for a GPU that the driver "
        "does not list, or correct gpus.count in the checklist.",
        action=Action.CONFIGURE,
        commands=("nvidia-smi -L", "lspci -nn -d 10de:"),
    )
