"""Whether the GPUs could replace their bad memory rows."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING, readings, smi


@check("gpu.row-remapping", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def row_remapping(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU failed to replace a bad row of its memory.

    Why: GPUs since Ampere replace rows that had errors by spare ones. Where no spare row is left, the bad one stays
    in use, and jobs that meet it end. Remapped rows as such are no fault.
    Remedy: take the GPU out of use and have it examined: a remapping failure is a reason for replacement.
    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
    """
    judged, others = readings(gpus, "remapped_rows_failure")
    yield from others
    for gpu in judged:
        counts = f"{gpu.remapped_rows_uncorrectable} rows remapped for uncorrectable errors"
        if not gpu.remapped_rows_failure:
            yield Evidence(subject=gpu.subject, observed=f"no remapping failure, {counts}")
            continue
        yield Finding(
            subject=gpu.subject,
            observed=f"a row could not be remapped; {counts}",
            expected="no remapping failure",
            remedy=Remedy(
                summary="Take the GPU out of use and have it examined with NVIDIA's field diagnostic.",
                action=Action.INSPECT_HARDWARE,
                commands=(smi(gpu, "-q -d ROW_REMAPPER"),),
            ),
            rollback=LOOKING,
        )
