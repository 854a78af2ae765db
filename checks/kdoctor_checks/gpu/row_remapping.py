from kdoctor.facts import Gpu
from kdoctor.model import Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import field_diagnostic
from kdoctor_checks.gpu._flags import gpu_flag

_FAILURE = "a faulty memory row could not be remapped"


@gpu_flag(
    "gpu.row-remapping",
    "remapped_rows_failure",
    severity=Severity.ERROR,
    expected="no remapping failure",
    remedy=lambda worn, gpus: field_diagnostic(worn, gpus, "ROW_REMAPPER"),
    brief=lambda _: _FAILURE,
)
def row_remapping(gpu: Gpu) -> str:
    """No GPU has failed to remap a faulty memory row.

    Why: GPUs since Ampere replace faulty memory rows with spare ones. Without a spare row, the faulty one stays in use,
    and jobs that hit it end. Remapped rows alone are not a fault.
    Remedy: stop using the GPU and have it tested. A remapping failure qualifies for replacement.
    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
    """
    count = gpu.remapped_rows_uncorrectable
    remapped = "" if count is None else f" ({counted(count, 'row')} remapped for uncorrectable errors)"
    return f"{_FAILURE if gpu.remapped_rows_failure else 'no remapping failure'}{remapped}"
