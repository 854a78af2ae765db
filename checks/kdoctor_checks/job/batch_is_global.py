"""The batch is large enough to be a global one."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, data_of, replicas_of


@check("job.batch-is-global", severity=Severity.WARNING, requires=["job.batch-divides"], scenario=SCENARIO)
def batch_is_global(run: SmokeRun, *, least_per_replica: int = 8) -> Iterator[Outcome]:
    """The batch is large enough to be a global one.

    Why: fit and distributed datasets take the global batch and cut it: a size that was meant for one replica leaves
    each of many a few examples, and slows the job instead of speeding it up.
    Remedy: multiply the batch for one device by strategy.num_replicas_in_sync; a job that wants small shares sets
    least_per_replica.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    data, replicas = data_of(run), replicas_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.batch is None or replicas is None:
        yield Unjudged(subject="batch", reason="the size of a batch, or the number of replicas, is not known")
    elif replicas == 1:
        yield NotApplicable(reason="there is one replica")
    elif data.batch // replicas >= least_per_replica:
        yield Evidence(subject="batch", observed=f"{data.batch // replicas} examples for each of {replicas} replicas")
    else:
        yield change(
            "batch",
            f"{data.batch} examples over {replicas} replicas leave each {data.batch // replicas}: this looks like the "
            "size for one replica",
            f"at least {least_per_replica} for each replica",
            f"If {data.batch} is what one replica should get, batch by {data.batch} * strategy.num_replicas_in_sync = "
            f"{data.batch * replicas}.",
        )
