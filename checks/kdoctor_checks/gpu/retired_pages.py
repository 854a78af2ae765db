"""Whether too many pages of the GPUs' memory were retired."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import LOOKING, readings, smi


@check("gpu.retired-pages", severity=Severity.ERROR, needs_gpus=True, requires=["driver.library-matches-module"])
def retired_pages(gpus: Gpus, *, most: int = 59) -> Iterator[Outcome]:
    """No GPU has nearly used up the pages that it may retire.

    Why: GPUs before Ampere take pages with errors out of use, up to 64 of them; then bad memory stays in use, and
    jobs that meet it end. Retired pages as such are no fault.
    Remedy: take the GPU out of use and have it examined.
    Sources:
        https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/row-remapping.html
        https://github.com/Azure/azurehpc-health-checks
    """
    judged, others = readings(gpus, "retired_pages_single_bit", "retired_pages_double_bit")
    yield from others
    for gpu in judged:
        single, double = gpu.retired_pages_single_bit or 0, gpu.retired_pages_double_bit or 0
        words = f"{single + double} retired pages ({single} for single, {double} for double bit errors)"
        if single + double <= most:
            yield Evidence(subject=gpu.subject, observed=words)
            continue
        yield Finding(
            subject=gpu.subject,
            observed=words,
            expected=f"at most {most}",
            remedy=Remedy(
                summary="Take the GPU out of use and have it examined with NVIDIA's field diagnostic.",
                action=Action.INSPECT_HARDWARE,
                commands=(smi(gpu, "-q -d PAGE_RETIREMENT"),),
            ),
            rollback=LOOKING,
        )
