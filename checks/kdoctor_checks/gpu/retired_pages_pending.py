from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Outcome, Severity
from kdoctor_checks._gpus import RESTART, judge, readings, reset
from kdoctor_checks.gpu._memory import replacement_pending


@check(
    "gpu.retired-pages-pending", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"]
)
def retired_pages_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU has memory pages waiting to be retired.

    Why: such a page had errors, and stays in use until the driver is loaded again. A job may hit it.
    Remedy: reset the GPU or restart the machine before a long job.
    Source: https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
    """
    judged, others = readings(gpus, "retired_pages_pending")
    yield from others
    pending = [gpu for gpu in judged if gpu.retired_pages_pending]
    remedy = reset(pending)
    for gpu in judged:
        yield judge(
            gpu.subject,
            f"{'memory' if gpu.retired_pages_pending else 'no'} pages are waiting for a reset to be retired",
            ok=not gpu.retired_pages_pending,
            expected="no pages pending",
            remedy=remedy,
            rollback=RESTART,
            explained_by=replacement_pending(gpu),
        )
