"""Whether the GPUs may be used for computing."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.compute-mode", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def compute_mode(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU's compute mode prohibits computing.

    Why: in compute mode "Prohibited" a GPU accepts no CUDA context, and TensorFlow goes on without it or fails when
    it starts. Nothing else shows it: the GPU answers, and is idle.
    Remedy: set the compute mode to default.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
    """
    judged, others = readings(gpus, "compute_mode")
    yield from others
    for gpu in judged:
        if gpu.compute_mode != "prohibited":
            yield Evidence(subject=gpu.subject, observed=f"compute mode {gpu.compute_mode}")
            continue
        yield Finding(
            subject=gpu.subject,
            observed="compute mode prohibited",
            expected="compute mode default",
            remedy=Remedy(
                summary="Set the compute mode to default.",
                action=Action.CONFIGURE,
                commands=(f"sudo {smi(gpu, '--compute-mode=DEFAULT')}",),
            ),
            rollback=Rollback.to("the recorded mode", f"sudo {smi(gpu, '--compute-mode=PROHIBITED')}"),
        )
