from kdoctor.facts import Gpu
from kdoctor.model import Severity
from kdoctor_checks._gpus import field_diagnostic
from kdoctor_checks.gpu._flags import gpu_flag


@gpu_flag(
    "gpu.sram-errors",
    "sram_threshold_exceeded",
    severity=Severity.ERROR,
    expected="below the threshold",
    remedy=lambda worn, gpus: field_diagnostic(worn, gpus, "ECC"),
    newer=True,
)
def sram_errors(gpu: Gpu) -> str:
    """No GPU exceeds NVIDIA's threshold for uncorrected SRAM errors.

    Why: caches and registers have no spare rows. A GPU above the threshold must be replaced, and ends jobs at random
    until then.
    Remedy: stop using the GPU and test it with NVIDIA's field diagnostic.
    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
    """
    relation = "above" if gpu.sram_threshold_exceeded else "below"
    return f"uncorrected SRAM errors are {relation} NVIDIA's threshold"
