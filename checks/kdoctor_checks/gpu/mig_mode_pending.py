from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor_checks._gpus import configure, judge, readings, smi


@check("gpu.mig-mode-pending", severity=Severity.WARNING, needs_gpus=True, requires=["gpu.mig-mode"])
def mig_mode_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU has a pending change of its MIG mode.

    Why: after the next reset or restart the GPU differs from the one checked here: partitioned instead of whole, for
    example. A restarted job then finds one small replica instead of a GPU.
    Remedy: reset the GPU now, or cancel the change.
    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html
    """
    judged, others = readings(gpus, "mig_mode", "mig_mode_pending")
    yield from others
    pending = [gpu for gpu in judged if gpu.mig_mode != gpu.mig_mode_pending]
    for gpu in judged:
        alike = [other for other in pending if other.mig_mode == gpu.mig_mode]
        now, then = ("on" if mode else "off" for mode in (gpu.mig_mode, gpu.mig_mode_pending))
        yield judge(
            gpu.subject,
            f"MIG is {now}" + (f", but {then} after the next reset" if now != then else ""),
            ok=now == then,
            expected="no change pending",
            remedy=configure(
                "Cancel the change, or reset the GPU now to apply it.",
                f"sudo {smi(alike, f'-mig {int(bool(gpu.mig_mode))}', among=gpus)}",
            ),
            rollback=Rollback.to(
                "restore the recorded pending mode",
                f"sudo {smi(alike, f'-mig {int(bool(gpu.mig_mode_pending))}', among=gpus)}",
            ),
        )
