"""Whether the GPUs' SRAM is worn out."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING, readings, smi


@check("gpu.sram-errors", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def sram_errors(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU's uncorrected SRAM errors are over NVIDIA's threshold.

    Why: caches and registers have no spare rows. A GPU whose errors cross the threshold is to be replaced, and until
    then ends jobs at random.
    Remedy: take the GPU out of use and have it examined with NVIDIA's field diagnostic.
    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
    """
    judged, others = readings(gpus, "sram_threshold_exceeded", newer=True)
    yield from others
    for gpu in judged:
        if not gpu.sram_threshold_exceeded:
            yield Evidence(subject=gpu.subject, observed="SRAM threshold not exceeded")
            continue
        yield Finding(
            subject=gpu.subject,
            observed="SRAM threshold exceeded",
            expected="SRAM threshold not exceeded",
            remedy=Remedy(
                summary="Take the GPU out of use and have it examined with NVIDIA's field diagnostic.",
                action=Action.INSPECT_HARDWARE,
                commands=(smi(gpu, "-q -d ECC"),),
            ),
            rollback=LOOKING,
        )
