from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import field_diagnostic, judge, readings


@check("gpu.unrepairable-memory", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def unrepairable_memory(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU has memory that cannot be repaired.

    Why: newer drivers report a memory fault that neither row remapping nor a channel repair can remove. Jobs that use
    this memory end, and the fault does not go away.
    Remedy: stop using the GPU and have it tested.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "unrepairable_memory", newer=True)
    yield from others
    worn = [gpu for gpu in judged if gpu.unrepairable_memory]
    remedy = field_diagnostic(worn, gpus, "ECC")
    for gpu in judged:
        found = "memory that cannot be repaired" if gpu.unrepairable_memory else "no unrepairable memory"
        yield judge(
            gpu.subject,
            found,
            ok=not gpu.unrepairable_memory,
            expected="no unrepairable memory",
            remedy=remedy,
            brief=found,
        )
