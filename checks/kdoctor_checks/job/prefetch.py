"""The pipeline ends in a prefetch."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, data_of


@check("job.prefetch", severity=Severity.INFO, requires=["job.data-readable"], scenario=SCENARIO)
def prefetch(run: SmokeRun) -> Iterator[Outcome]:
    """The pipeline ends in a prefetch.

    Why: without it the replicas wait while the next batch is made.
    Remedy: end the pipeline with .prefetch(tf.data.AUTOTUNE).
    Source: https://www.tensorflow.org/guide/data_performance
    """
    data = data_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.prefetched is None:
        yield NotApplicable(reason=f"{data.kind} has no prefetch of tf.data")
    elif data.prefetched:
        yield Evidence(subject="pipeline", observed="it ends in a prefetch")
    else:
        yield change(
            "pipeline",
            "no prefetch at its end",
            "batches are made while the replicas compute",
            "End the pipeline with .prefetch(tf.data.AUTOTUNE).",
        )
