from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, starves, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobData, JobModel

_REMEDY = (
    "Batch with drop_remainder=True; or use BatchNormalization(synchronized=True); or use dataset.repeat() with "
    "fit(steps_per_epoch=...)."
)


@job_check("job.final-batch", Severity.ERROR, "job.data-readable", answers=["smoke.starved-replica"])
def final_batch(data: JobData, model: JobModel, replicas: int) -> Outcome:
    """The final batch leaves no replica of a model with BatchNormalization empty.

    Why: a batch of n is split over R replicas into chunks of ceil(n / R). A replica without examples computes the
    moments of an empty batch, and the weights become NaN without an error (docs/smoke.md).
    Remedy: batch with drop_remainder=True, set synchronized=True on BatchNormalization, or repeat() with
    steps_per_epoch.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    if data.full_batches_only:
        return evidence("final batch", "every batch is full")
    if data.endless:
        return evidence("final batch", "none, because the dataset is infinite")
    if not model.normalisations:
        size = "unknown size" if data.final_batch is None else counted(data.final_batch, "example")
        return evidence("final batch", f"{size}; no layer is affected by an empty replica")
    if data.final_batch is None:
        return unknown("final batch", "its size is not known, and the data is too long to count")
    if not starves(data.final_batch, replicas):
        return evidence(
            "final batch", f"{counted(data.final_batch, 'example')} feed all of {counted(replicas, 'replica')}"
        )
    return finding(
        "final batch",
        f"{counted(data.final_batch, 'example')} over {counted(replicas, 'replica')} leave one empty, and "
        f"{some(model.normalisations)} normalizes the share of each replica",
        "at least one example on every replica, or no final batch",
        _REMEDY,
        brief=f"leaves one of {counted(replicas, 'replica')} empty, so weights become NaN",
    )
