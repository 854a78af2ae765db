from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import field_diagnostic, judge, readings


@check("gpu.row-remapping", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def row_remapping(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU has failed to remap a faulty memory row.

    Why: GPUs since Ampere replace faulty memory rows with spare ones. Without a spare row, the faulty one stays in use,
    and jobs that hit it end. Remapped rows alone are not a fault.
    Remedy: stop using the GPU and have it tested. A remapping failure qualifies for replacement.
    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
    """
    judged, others = readings(gpus, "remapped_rows_failure")
    yield from others
    worn = [gpu for gpu in judged if gpu.remapped_rows_failure]
    remedy = field_diagnostic(worn, gpus, "ROW_REMAPPER")
    for gpu in judged:
        failure = "a faulty memory row could not be remapped" if gpu.remapped_rows_failure else "no remapping failure"
        count = gpu.remapped_rows_uncorrectable
        remapped = "" if count is None else f" ({counted(count, 'row')} remapped for uncorrectable errors)"
        yield judge(
            gpu.subject,
            f"{failure}{remapped}",
            ok=not gpu.remapped_rows_failure,
            expected="no remapping failure",
            remedy=remedy,
            brief=failure,
        )
