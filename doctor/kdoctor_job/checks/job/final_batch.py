from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, starves, unknown
from kdoctor_job.checks.job._user_model import headline, job_check, job_of
from kdoctor_job.facts import JobData, JobModel, JobTraining

_REMEDY = (
    "Batch with drop_remainder=True, or use dataset.repeat() with fit(steps_per_epoch=...). Do not divide by the "
    "examples of a replica, and use BatchNormalization(synchronized=True)."
)
_EXPECTED = "a final batch that trains, or none"


@job_check("job.final-batch", Severity.ERROR, "job.data-readable", answers=["smoke.starved-replica"])
def final_batch(run: SmokeRun, data: JobData, model: JobModel, replicas: int) -> Outcome:
    """The final batch trains without an error, and leaves weights and losses finite.

    Why: a batch of n is split over R replicas into chunks of ceil(n / R). A replica without examples computes the
    moments of an empty batch, or divides by its size, and the weights become NaN without an error.
    kdoctor takes a step with a batch of that size.
    Remedy: batch with drop_remainder=True, set synchronized=True on BatchNormalization, or repeat() with
    steps_per_epoch.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    if data.full_batches_only or data.endless:
        return evidence("final batch", "every batch is full")
    size = "unknown size" if data.final_batch is None else counted(data.final_batch, "example")
    size = f"{size} over {counted(replicas, 'replica')}"
    measured = _judge_measured(size, job_of(run).training)
    if measured is not None:
        return measured
    if model.normalisations and data.final_batch is None:
        return unknown("final batch", "its size is not known, and the data is too long to count")
    if model.normalisations and starves(data.final_batch or 0, replicas):
        observed = f"{size} leave one empty, and {some(model.normalisations)} normalizes the share of each replica"
        return finding("final batch", observed, _EXPECTED, _REMEDY, brief="a replica is empty, so weights become NaN")
    return evidence("final batch", f"{size}; no layer is affected by an empty replica")


def _judge_measured(size: str, training: JobTraining | None) -> Outcome | None:
    """How a step with as many examples ended; None if it was not taken."""
    if training is None or (training.final_problem is None and training.final_nonfinite is None):
        return None
    if training.final_problem:
        observed, brief = f"{size}: {training.final_problem}", headline(training.final_problem)
        return finding("final batch", observed, _EXPECTED, _REMEDY, brief=brief)
    if training.final_nonfinite:
        observed = f"{size}: NaN or infinity in {some(training.final_nonfinite)} (measured here)"
        spoilt = ("job.trains",) if training.nonfinite or None in training.own_losses else ()  # before it, too
        brief = "makes weights or the loss NaN"
        return finding("final batch", observed, _EXPECTED, _REMEDY, brief=brief, explained_by=spoilt)
    return evidence("final batch", f"{size}: weights and the loss stay finite (measured here)")
