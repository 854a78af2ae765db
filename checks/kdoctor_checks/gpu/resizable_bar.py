"""Whether the whole memory of each GPU can be addressed over PCIe."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, size


@check("gpu.resizable-bar", severity=Severity.INFO, needs_gpus=True, requires=["driver.library-matches-module"])
def resizable_bar(gpus: Gpus) -> Iterator[Outcome]:
    """Every GPU's BAR1 covers its whole memory.

    Why: BAR1 is the window through which the processor and other devices reach a GPU's memory. Where it is smaller
    (256 MiB without resizable BAR), transfers between devices go through it piece by piece. Training works; peers
    over PCIe and network cards may be slower.
    Remedy: switch "Above 4G Decoding" and "Re-Size BAR" on in the firmware's setup, where the card supports it.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "bar1_total_bytes", "memory_total_bytes")
    yield from others
    for gpu in judged:
        bar, memory = gpu.bar1_total_bytes or 0, gpu.memory_total_bytes or 0
        words = f"BAR1 {size(bar)}, memory {size(memory)}"
        if bar >= memory:
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected=f"BAR1 of at least {size(memory)}",
            remedy=Remedy(
                summary='Switch "Above 4G Decoding" and "Re-Size BAR" on in the firmware\'s setup, where the card '
                "supports it.",
                action=Action.CONFIGURE,
                commands=("nvidia-smi -q -d MEMORY",),
            ),
            rollback=Rollback.irreversible("the firmware's setup is not among the facts; note it before the change"),
        )
