from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import RESTART, judge, readings, reset
from kdoctor_checks.gpu._memory import replacement_pending


@check("gpu.repair-pending", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"])
def repair_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU waits for a reset to repair a memory channel or a processing cluster (TPC).

    Why: newer GPUs replace a faulty memory channel, or a faulty cluster of multiprocessors, by a spare one at the next
    reset. Until then the faulty part stays in use, and a job may hit it.
    Remedy: reset the GPU before a long job.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "channel_repair_pending", "tpc_repair_pending", newer=True)
    yield from others
    pending = [gpu for gpu in judged if _parts(gpu)]
    remedy = reset(pending)
    for gpu in judged:
        parts = _parts(gpu)
        found = f"{' and '.join(parts)} repair pending until a reset" if parts else "no repair pending"
        yield judge(
            gpu.subject,
            found,
            ok=not parts,
            expected="no repair pending",
            remedy=remedy,
            rollback=RESTART,
            brief=found,
            explained_by=replacement_pending(gpu),
        )


def _parts(gpu: Gpu) -> list[str]:
    found = (("memory channel", gpu.channel_repair_pending), ("TPC", gpu.tpc_repair_pending))
    return [part for part, pending in found if pending]
