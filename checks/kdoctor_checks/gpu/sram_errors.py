from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import field_diagnostic, judge, readings


@check("gpu.sram-errors", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def sram_errors(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU exceeds NVIDIA's threshold for uncorrected SRAM errors.

    Why: caches and registers have no spare rows. A GPU above the threshold must be replaced, and ends jobs at random
    until then.
    Remedy: stop using the GPU and test it with NVIDIA's field diagnostic.
    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/rma-policy-thresholds-for-row-remapping.html
    """
    judged, others = readings(gpus, "sram_threshold_exceeded", newer=True)
    yield from others
    worn = [gpu for gpu in judged if gpu.sram_threshold_exceeded]
    remedy = field_diagnostic(worn, gpus, "ECC")
    for gpu in judged:
        relation = "above" if gpu.sram_threshold_exceeded else "below"
        yield judge(
            gpu.subject,
            f"uncorrected SRAM errors are {relation} NVIDIA's threshold",
            ok=not gpu.sram_threshold_exceeded,
            expected="below the threshold",
            remedy=remedy,
        )
