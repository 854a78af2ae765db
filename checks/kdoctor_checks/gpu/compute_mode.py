from kdoctor.facts import Gpu
from kdoctor.model import Remedy, Rollback, Severity
from kdoctor_checks._gpus import smi
from kdoctor_checks.gpu._flags import gpu_flag


@gpu_flag(
    "gpu.compute-mode",
    "compute_mode",
    severity=Severity.ERROR,
    bad=lambda gpu: gpu.compute_mode == "prohibited",
    expected="compute mode default",
    remedy=lambda closed, gpus: Remedy.configure(
        "Set the compute mode to default.", f"sudo {smi(closed, '--compute-mode=DEFAULT', among=gpus)}"
    ),
    rollback=lambda closed, gpus: Rollback.to(
        "restore the recorded mode", f"sudo {smi(closed, '--compute-mode=PROHIBITED', among=gpus)}"
    ),
)
def compute_mode(gpu: Gpu) -> str:
    """No GPU's compute mode prohibits CUDA.

    Why: in compute mode "Prohibited", a GPU accepts no CUDA context. TensorFlow then fails at start, or continues
    without the GPU. The GPU itself responds and is idle, so nothing else shows the problem.
    Remedy: set the compute mode to default.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    return f"compute mode is {gpu.compute_mode}"
