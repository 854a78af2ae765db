"""Whether bad memory rows wait for a reset."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED, readings


@check(
    "gpu.row-remapping-pending", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"]
)
def row_remapping_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU waits for a reset to replace a bad row of its memory.

    Why: the row had an error that could not be corrected. It is replaced at the next reset; until then a job may meet
    it again. NVIDIA lets new work start; some fleets do not, and raise this to an error in their checklists.
    Remedy: reset the GPU before a long job.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
    """
    judged, others = readings(gpus, "remapped_rows_pending")
    yield from others
    for gpu in judged:
        if gpu.remapped_rows_pending:
            yield _finding(gpu)
        else:
            yield Evidence(subject=gpu.subject, observed="no row waits to be remapped")


def _finding(gpu: Gpu) -> Finding:
    counts = f"uncorrectable {gpu.remapped_rows_uncorrectable}, correctable {gpu.remapped_rows_correctable}"
    return Finding(
        subject=gpu.subject,
        observed=f"rows wait for a reset to be remapped; {counts}",
        expected="nothing pending",
        remedy=Remedy(
            summary="End all that uses the GPU and reset it, or restart.",
            action=Action.REBOOT,
            commands=(f"sudo nvidia-smi --gpu-reset -i {gpu.bus_id or gpu.index}",),
        ),
        rollback=NOTHING_CHANGED,
    )
