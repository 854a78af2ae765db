from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Assumptions, GpuAssumption, Outcome, Severity, Unjudged
from kdoctor_checks._gpus import RESET_NEEDED, RESTART, answering, configure, judge

_OTHER_MACHINE = configure(
    "Request the right number of GPUs from the scheduler or container runtime, find the GPU that the driver does not "
    "list, or correct gpus.count in the checklist.",
    "nvidia-smi -L",
    "lspci -nn -d 10de:",
)


@check(
    "gpu.count-expected",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["gpu.responding", "gpu.visible-to-driver"],
    judges=("gpus.count",),
)
def count_expected(gpus: Gpus, assumptions: Assumptions) -> Iterator[Outcome]:
    """As many GPUs respond as the checklist expects (by default at least one).

    Why: the global batch size, the learning rate and the reserved time depend on the number of replicas. With fewer
    GPUs the job runs, but it trains something different.
    Remedy: request the right number of GPUs from the scheduler or container runtime, or find the lost GPU.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    wanted = assumptions.gpus or GpuAssumption()
    found = len(answering(gpus))
    gone = [gpu.subject for gpu in gpus.devices if gpu not in answering(gpus)]
    observed = f"{found} {'responds' if found == 1 else 'respond'}" + (f"; lost: {', '.join(gone)}" if gone else "")
    if gpus.state != "ready" or gpus.count is None or gpus.count > len(gpus.devices):
        counts = f"it counts {gpus.count} and lists {len(gpus.devices)}"
        reason = gpus.error or (gpus.errors.get("count") if gpus.count is None else None) or counts
        yield Unjudged(subject="GPUs", reason=f"not all listed by NVML ({reason})")
        return
    exact, least = wanted.count, 1 if wanted.at_least is None else wanted.at_least
    expected = f"exactly {exact}" if exact is not None else f"at least {least}"
    yield judge(
        "GPUs",
        observed,
        ok=found == exact if exact is not None else found >= least,
        expected=expected,
        remedy=RESET_NEEDED if gone else _OTHER_MACHINE,
        rollback=RESTART,
    )
