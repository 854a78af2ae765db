"""Whether pages of memory wait to be retired."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpus
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks._gpus import NOTHING_CHANGED, readings


@check(
    "gpu.retired-pages-pending", severity=Severity.WARNING, needs_gpus=True, requires=["driver.library-matches-module"]
)
def retired_pages_pending(gpus: Gpus) -> Iterator[Outcome]:
    """No GPU waits for a restart to retire a page of its memory.

    Why: the page had errors, and is in use until the driver is loaded anew; a job may meet it again.
    Remedy: reset the GPU or restart before a long job.
    Source: https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
    """
    judged, others = readings(gpus, "retired_pages_pending")
    yield from others
    for gpu in judged:
        if not gpu.retired_pages_pending:
            yield Evidence(subject=gpu.subject, observed="no page waits to be retired")
            continue
        yield Finding(
            subject=gpu.subject,
            observed="pages wait for a restart to be retired",
            expected="nothing pending",
            remedy=Remedy(
                summary="End all that uses the GPU and reset it, or restart.",
                action=Action.REBOOT,
                commands=(f"sudo nvidia-smi --gpu-reset -i {gpu.bus_id or gpu.index}",),
            ),
            rollback=NOTHING_CHANGED,
        )
