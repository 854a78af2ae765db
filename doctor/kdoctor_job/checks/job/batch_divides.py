from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobData


@job_check("job.batch-divides", Severity.ERROR, "job.data-readable")
def batch_divides(data: JobData, replicas: int) -> Outcome:
    """The global batch size is a multiple of the number of replicas.

    Why: fit splits each batch over the replicas. Keras 3.5 to 3.15 fail if the first batch does not divide, and an
    uneven share counts as much as a full one.
    Remedy: make the global batch size a multiple of the number of replicas: per_replica *
    strategy.num_replicas_in_sync.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    if data.batch is None:
        return unknown("batch", "its size is not known")
    if data.batch % replicas == 0:
        return evidence("batch", f"{counted(data.batch, 'example')}, {data.batch // replicas} per replica")
    return finding(
        "batch",
        f"{counted(data.batch, 'example')} cannot be split evenly over {counted(replicas, 'replica')}",
        f"a multiple of {replicas}",
        "Set the batch size to per_replica * strategy.num_replicas_in_sync.",
        brief=f"{data.batch} cannot be split evenly over {counted(replicas, 'replica')}",
    )
