"""Whether pages of memory wait to be retired."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Evidence, Finding, Outcome, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED, readings, reset


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
    for gpu in judged:
        if not gpu.retired_pages_pending:
            yield Evidence(subject=gpu.subject, observed="no pages waiting to be retired")
            continue
        yield Finding(
            subject=gpu.subject,
            observed="memory pages are waiting for a reset to be retired",
            expected="no pages pending",
            remedy=reset(gpu),
            rollback=NOTHING_CHANGED,
        )
