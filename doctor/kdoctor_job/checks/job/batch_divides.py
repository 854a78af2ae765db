from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, data_of, replicas_of


@check(
    "job.batch-divides", severity=Severity.ERROR, requires=["job.data-readable"], scenario=SCENARIO, explained_by=NO_GPU
)
def batch_divides(run: SmokeRun) -> Iterator[Outcome]:
    """The global batch size is a multiple of the number of replicas.

    Why: fit splits each batch over the replicas. Keras 3.5 to 3.15 fail if the first batch does not divide, and an
    uneven share counts as much as a full one.
    Remedy: make the global batch size a multiple of the number of replicas: per_replica *
    strategy.num_replicas_in_sync.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    data, replicas = data_of(run), replicas_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.batch is None or replicas is None:
        yield unknown("batch", "the batch size or the number of replicas is not known")
    elif data.batch % replicas == 0:
        yield evidence("batch", f"{counted(data.batch, 'example')}, {data.batch // replicas} per replica")
    else:
        yield finding(
            "batch",
            f"{counted(data.batch, 'example')} cannot be split evenly over {counted(replicas, 'replica')}",
            f"a multiple of {replicas}",
            "Set the batch size to per_replica * strategy.num_replicas_in_sync.",
            brief=f"{data.batch} cannot be split evenly over {counted(replicas, 'replica')}",
        )
