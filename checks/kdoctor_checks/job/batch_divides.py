"""The global batch divides evenly over the replicas."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, data_of, replicas_of


@check("job.batch-divides", severity=Severity.ERROR, requires=["job.data-readable"], scenario=SCENARIO)
def batch_divides(run: SmokeRun) -> Iterator[Outcome]:
    """The global batch divides evenly over the replicas.

    Why: fit cuts each batch over the replicas; Keras 3.5 to 3.15 fail if the first one does not divide, and a share
    that is uneven counts as much as a full one.
    Remedy: make the global batch a multiple of the number of replicas: per_replica * strategy.num_replicas_in_sync.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    data, replicas = data_of(run), replicas_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.batch is None or replicas is None:
        yield Unjudged(subject="batch", reason="the size of a batch, or the number of replicas, is not known")
    elif data.batch % replicas == 0:
        yield Evidence(
            subject="batch", observed=f"{data.batch} examples: {data.batch // replicas} for each of {replicas}"
        )
    else:
        yield change(
            "batch",
            f"{data.batch} examples over {replicas} replicas",
            f"a multiple of {replicas}",
            "Batch by per_replica * strategy.num_replicas_in_sync.",
        )
