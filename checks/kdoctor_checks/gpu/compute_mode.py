from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Rollback, Severity
from kdoctor_checks._gpus import configure, judge, readings, smi


@check("gpu.compute-mode", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def compute_mode(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU's compute mode prohibits CUDA.

    Why: in compute mode "Prohibited", a GPU accepts no CUDA context. TensorFlow then fails at start, or continues
    without the GPU. The GPU itself responds and is idle, so nothing else shows the problem.
    Remedy: set the compute mode to default.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "compute_mode")
    yield from others
    closed = [gpu for gpu in judged if gpu.compute_mode == "prohibited"]
    for gpu in judged:
        yield judge(
            gpu.subject,
            f"compute mode is {gpu.compute_mode}",
            ok=gpu not in closed,
            expected="compute mode default",
            remedy=configure(
                "Set the compute mode to default.", f"sudo {smi(closed, '--compute-mode=DEFAULT', among=gpus)}"
            ),
            rollback=Rollback.to(
                "restore the recorded mode", f"sudo {smi(closed, '--compute-mode=PROHIBITED', among=gpus)}"
            ),
        )
