from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, field_diagnostic, judge, readings, span


@check("gpu.retired-pages", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def retired_pages(gpus: Gpus, *, most: int = 59) -> Iterator[Outcome]:
    """No GPU is close to its limit of retired memory pages.

    Why: GPUs before Ampere retire memory pages with errors, up to 64 of them. After that, bad memory stays in use, and
    jobs that hit it end. Retired pages alone are not a fault.
    Remedy: stop using the GPU and have it tested.
    Sources:
        https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/row-remapping.html
        https://github.com/Azure/azurehpc-health-checks
    """
    judged, others = readings(gpus, "retired_pages_single_bit", "retired_pages_double_bit")
    yield from others
    counts = {gpu.index: (gpu.retired_pages_single_bit or 0, gpu.retired_pages_double_bit or 0) for gpu in judged}
    worn = [gpu for gpu in judged if sum(counts[gpu.index]) > most]
    remedy = field_diagnostic(worn, gpus, "PAGE_RETIREMENT")
    for gpu in judged:
        single, double = counts[gpu.index]
        yield judge(
            gpu.subject,
            f"{counted(single + double, 'retired page')} ({single} single-bit, {double} double-bit)",
            ok=gpu not in worn,
            expected=f"at most {most}",
            remedy=remedy,
            brief=span([sum(counts[other.index]) for other in worn or [gpu]], "retired pages"),
        )
