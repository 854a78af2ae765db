"""Whether a change of the MIG mode waits for a reset."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.mig-mode-pending", severity=Severity.WARNING, needs_gpus=True, requires=["gpu.mig-mode"])
def mig_mode_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU waits for a reset to change its MIG mode.

    Why: after the next reset or restart the GPU is another than the one that was examined: split where it was whole.
    A job that is restarted then finds one small replica where it had a GPU.
    Remedy: reset the GPU now, or take the change back.
    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/deployment-considerations.html
    """
    judged, others = readings(gpus, "mig_mode", "mig_mode_pending")
    yield from others
    for gpu in judged:
        now, then = ("on" if mode else "off" for mode in (gpu.mig_mode, gpu.mig_mode_pending))
        if now == then:
            yield Evidence(subject=gpu.subject, observed=f"MIG mode {now}, nothing pending")
            continue
        yield Finding(
            subject=gpu.subject,
            observed=f"MIG mode {now}, {then} after the next reset",
            expected="nothing pending",
            remedy=Remedy(
                summary="Take the change back, or reset the GPU now so that it takes effect.",
                action=Action.CONFIGURE,
                commands=(f"sudo {smi(gpu, f'-mig {int(bool(gpu.mig_mode))}')}", f"sudo {smi(gpu, '--gpu-reset')}"),
            ),
            rollback=Rollback.to(
                "the pending mode, as recorded", f"sudo {smi(gpu, f'-mig {int(bool(gpu.mig_mode_pending))}')}"
            ),
        )
