from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import RESTART, judge, readings, reset
from kdoctor_checks.gpu._memory import replacement_pending


@check(
    "gpu.row-remapping-pending", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"]
)
def row_remapping_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU has faulty memory rows waiting to be remapped.

    Why: such a row had an uncorrectable error. It is replaced at the next reset, and a job may hit it until then.
    NVIDIA allows new jobs; some fleets do not, and raise this to an error in their checklists.
    Remedy: reset the GPU before a long job.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
    """
    judged, others = readings(gpus, "remapped_rows_pending")
    yield from others
    pending = [gpu for gpu in judged if gpu.remapped_rows_pending]
    remedy = reset(pending)
    for gpu in judged:
        remapped = (gpu.remapped_rows_uncorrectable, gpu.remapped_rows_correctable)
        counts = "{} uncorrectable, {} correctable".format(*("?" if count is None else count for count in remapped))
        rows = "memory" if gpu.remapped_rows_pending else "no"
        yield judge(
            gpu.subject,
            f"{rows} rows are waiting for a reset to be remapped (remapped so far: {counts})",
            ok=not gpu.remapped_rows_pending,
            expected="no rows pending",
            remedy=remedy,
            rollback=RESTART,
            brief="memory rows are waiting for a reset to be remapped",
            explained_by=replacement_pending(gpu),
        )
