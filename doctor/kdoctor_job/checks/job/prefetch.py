from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobData

_REMEDY = "End the pipeline with .prefetch(tf.data.AUTOTUNE)."


@job_check("job.prefetch", Severity.INFO, "job.data-readable")
def prefetch(data: JobData) -> Outcome:
    """The input pipeline ends with prefetch.

    Why: without it the replicas wait while the next batch is produced.
    Remedy: end the pipeline with .prefetch(tf.data.AUTOTUNE).
    Source: https://www.tensorflow.org/guide/data_performance
    """
    if data.prefetched is None:
        return NotApplicable(reason=f"prefetch of tf.data does not apply to {data.kind}")
    if data.prefetched:
        return evidence("pipeline", "ends with prefetch")
    return finding("pipeline", "does not end with prefetch", "batches are produced during the steps", _REMEDY)
