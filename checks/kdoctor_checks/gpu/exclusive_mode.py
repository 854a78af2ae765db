"""Whether several processes may use a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import readings, smi


@check("gpu.exclusive-mode", severity=Severity.WARNING, needs_gpus=True, requires=["gpu.compute-mode"])
def exclusive_mode(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU is reserved for a single process.

    Why: in compute mode "Exclusive Process" the second process that wants the GPU fails: an evaluation beside the
    training, or a restart before the old process has ended. One training process alone is not harmed.
    Remedy: set the compute mode to default, unless the exclusion is meant.
    Sources:
        https://docs.nvidia.com/deploy/nvidia-smi/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(gpus, "compute_mode")
    yield from others
    for gpu in judged:
        mode = gpu.compute_mode or ""
        if not mode.startswith("exclusive"):
            yield Evidence(subject=gpu.subject, observed=f"compute mode {mode}")
            continue
        word = mode.upper().replace("-", "_")
        yield Finding(
            subject=gpu.subject,
            observed=f"compute mode {mode}",
            expected="compute mode default",
            remedy=Remedy(
                summary="Set the compute mode to default, unless the exclusion is meant.",
                action=Action.CONFIGURE,
                commands=(f"sudo {smi(gpu, '--compute-mode=DEFAULT')}",),
            ),
            rollback=Rollback.to("the recorded mode", f"sudo {smi(gpu, f'--compute-mode={word}')}"),
        )
