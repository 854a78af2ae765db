from kdoctor.facts import Gpu
from kdoctor.model import Severity
from kdoctor_checks._gpus import RESTART, reset
from kdoctor_checks.gpu._flags import gpu_flag
from kdoctor_checks.gpu._memory import replacement_pending


@gpu_flag(
    "gpu.retired-pages-pending",
    "retired_pages_pending",
    severity=Severity.WARNING,
    expected="no pages pending",
    remedy=lambda pending, _: reset(pending),
    rollback=RESTART,
    explained_by=replacement_pending,
)
def retired_pages_pending(gpu: Gpu) -> str:
    """No GPU has memory pages waiting to be retired.

    Why: such a page had errors, and stays in use until the driver is loaded again. A job may hit it.
    Remedy: reset the GPU or restart the machine before a long job.
    Source: https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
    """
    return f"{'memory' if gpu.retired_pages_pending else 'no'} pages are waiting for a reset to be retired"
