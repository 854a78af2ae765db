from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, data_of, replicas_of


@check(
    "job.batch-is-global",
    severity=Severity.WARNING,
    requires=["job.batch-divides"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def batch_is_global(run: SmokeRun, *, least_per_replica: int = 8) -> Iterator[Outcome]:
    """The batch size is large enough to be a global batch size.

    Why: fit and distributed datasets take the global batch and split it. A size that was meant for one replica leaves
    each of many replicas with a few examples, and slows the job down.
    Remedy: multiply the batch size of one device by strategy.num_replicas_in_sync. For small shares on purpose, set
    least_per_replica.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    data, replicas = data_of(run), replicas_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.batch is None or replicas is None:
        yield unknown("batch", "the batch size or the number of replicas is not known")
    elif replicas == 1:
        yield NotApplicable(reason="the job has only one replica")
    elif data.batch // replicas >= least_per_replica:
        yield evidence(
            "batch", f"{counted(data.batch // replicas, 'example')} for each of {counted(replicas, 'replica')}"
        )
    else:
        yield finding(
            "batch",
            f"{counted(data.batch, 'example')} for {counted(replicas, 'replica')}, {data.batch // replicas} for each; "
            "this looks like a per-replica batch size",
            f"at least {least_per_replica} for each replica",
            f"If {data.batch} is the per-replica batch size, set the batch size to {data.batch} * "
            f"strategy.num_replicas_in_sync = {data.batch * replicas}.",
            brief=f"only {counted(data.batch // replicas, 'example')} for each of {counted(replicas, 'replica')}",
        )
