from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobData


@job_check("job.batch-is-global", Severity.WARNING, "job.batch-divides", several=True)
def batch_is_global(data: JobData, replicas: int, *, least_per_replica: int = 8) -> Outcome:
    """The batch size is large enough to be a global batch size.

    Why: fit and distributed datasets take the global batch and split it. A size that was meant for one replica leaves
    each of many replicas with a few examples, and slows the job down.
    Remedy: multiply the batch size of one device by strategy.num_replicas_in_sync. For small shares on purpose, set
    least_per_replica.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    if data.batch is None:
        return unknown("batch", "its size is not known")
    if data.batch // replicas >= least_per_replica:
        return evidence(
            "batch", f"{counted(data.batch // replicas, 'example')} for each of {counted(replicas, 'replica')}"
        )
    return finding(
        "batch",
        f"{counted(data.batch, 'example')} for {counted(replicas, 'replica')}, {data.batch // replicas} for each; "
        "this looks like a per-replica batch size",
        f"at least {least_per_replica} for each replica",
        f"If {data.batch} is the per-replica batch size, set the batch size to {data.batch} * "
        f"strategy.num_replicas_in_sync = {data.batch * replicas}.",
        brief=f"only {counted(data.batch // replicas, 'example')} for each of {counted(replicas, 'replica')}",
    )
