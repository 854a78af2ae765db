from kdoctor.facts import Gpu
from kdoctor.model import Severity
from kdoctor_checks._gpus import field_diagnostic
from kdoctor_checks.gpu._flags import gpu_flag


@gpu_flag(
    "gpu.unrepairable-memory",
    "unrepairable_memory",
    severity=Severity.ERROR,
    expected="no unrepairable memory",
    remedy=lambda worn, gpus: field_diagnostic(worn, gpus, "ECC"),
    brief=lambda _: "memory that cannot be repaired",
    newer=True,
)
def unrepairable_memory(gpu: Gpu) -> str:
    """No GPU has memory that cannot be repaired.

    Why: newer drivers report a memory fault that neither row remapping nor a channel repair can remove. Jobs that use
    this memory end, and the fault does not go away.
    Remedy: stop using the GPU and have it tested.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    return "memory that cannot be repaired" if gpu.unrepairable_memory else "no unrepairable memory"
