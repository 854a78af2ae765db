from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import SCENARIO, data_of

_REMEDY = "End the pipeline with .prefetch(tf.data.AUTOTUNE)."


@check("job.prefetch", severity=Severity.INFO, requires=["job.data-readable"], scenario=SCENARIO, explained_by=NO_GPU)
def prefetch(run: SmokeRun) -> Iterator[Outcome]:
    """The input pipeline ends with prefetch.

    Why: without it the replicas wait while the next batch is produced.
    Remedy: end the pipeline with .prefetch(tf.data.AUTOTUNE).
    Source: https://www.tensorflow.org/guide/data_performance
    """
    data = data_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.prefetched is None:
        yield NotApplicable(reason=f"prefetch of tf.data does not apply to {data.kind}")
    elif data.prefetched:
        yield evidence("pipeline", "ends with prefetch")
    else:
        yield finding("pipeline", "does not end with prefetch", "batches are produced during the steps", _REMEDY)
