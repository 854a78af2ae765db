from kdoctor.facts import Gpu
from kdoctor.model import Severity
from kdoctor_checks._gpus import RESTART, reset
from kdoctor_checks.gpu._flags import gpu_flag
from kdoctor_checks.gpu._memory import replacement_pending


@gpu_flag(
    "gpu.row-remapping-pending",
    "remapped_rows_pending",
    severity=Severity.WARNING,
    expected="no rows pending",
    remedy=lambda pending, _: reset(pending),
    rollback=RESTART,
    brief=lambda _: "memory rows are waiting for a reset to be remapped",
    explained_by=replacement_pending,
)
def row_remapping_pending(gpu: Gpu) -> str:
    """No GPU has faulty memory rows waiting to be remapped.

    Why: such a row had an uncorrectable error. It is replaced at the next reset, and a job may hit it until then.
    NVIDIA allows new jobs; some fleets do not, and raise this to an error in their checklists.
    Remedy: reset the GPU before a long job.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
    """
    remapped = (gpu.remapped_rows_uncorrectable, gpu.remapped_rows_correctable)
    counts = "{} uncorrectable, {} correctable".format(*("?" if count is None else count for count in remapped))
    rows = "memory" if gpu.remapped_rows_pending else "no"
    return f"{rows} rows are waiting for a reset to be remapped (remapped so far: {counts})"
