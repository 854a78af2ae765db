from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, RESET_NEEDED, RESTART, judge, readings, virtual
from kdoctor_checks.gpu._memory import worn_out


@check("gpu.ecc-errors", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def ecc_errors(gpus: Gpus, *, most: int = 0) -> Iterator[Outcome]:
    """No GPU has uncorrected memory errors since the driver was loaded.

    Why: an uncorrected error ends the process that hits it. The bad memory stays in use until the GPU is reset, so the
    next job may hit it again. Corrected errors and errors before the last reset do not count.
    Remedy: reset the GPU or restart the machine so that bad rows are replaced, and watch whether errors return.
    Sources:
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
        https://docs.nvidia.com/deploy/nvml-api/
    """
    judged, others = readings(
        gpus, "ecc_uncorrected_volatile", owed=lambda gpu: gpu.ecc_mode is True and virtual(gpus) is None
    )
    yield from others
    counting = [gpu for gpu in judged if gpu.ecc_mode is not False]
    if judged and not counting:
        yield NotApplicable(reason="ECC is off, so errors are not counted (gpu.ecc-mode)")
    for gpu in counting:
        errors, life = gpu.ecc_uncorrected_volatile or 0, gpu.ecc_uncorrected_aggregate
        lifetime = "" if life is None else f", {life} over the GPU's lifetime"
        yield judge(
            gpu.subject,
            f"{counted(errors, 'uncorrected memory error')} since the driver was loaded{lifetime}",
            ok=errors <= most,
            expected=f"at most {most}" if most else "no uncorrected memory error",
            remedy=RESET_NEEDED,
            rollback=RESTART,
            brief="uncorrected memory errors since the driver was loaded",
            value="" if errors else "no memory errors",
            explained_by=worn_out(gpu),
        )
