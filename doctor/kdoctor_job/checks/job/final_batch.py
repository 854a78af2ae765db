from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, starves, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, data_of, model_of, replicas_of

_REMEDY = (
    "Batch with drop_remainder=True; or use BatchNormalization(synchronized=True); or use dataset.repeat() with "
    "fit(steps_per_epoch=...)."
)


@check(
    "job.final-batch", severity=Severity.ERROR, requires=["job.data-readable"], scenario=SCENARIO, explained_by=NO_GPU
)
def final_batch(run: SmokeRun) -> Iterator[Outcome]:
    """The final batch leaves no replica of a model with BatchNormalization empty.

    Why: a batch of n is split over R replicas into chunks of ceil(n / R). A replica without examples computes the
    moments of an empty batch, and the weights become NaN without an error (docs/smoke.md).
    Remedy: batch with drop_remainder=True, set synchronized=True on BatchNormalization, or repeat() with
    steps_per_epoch.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    data, model, replicas = data_of(run), model_of(run), replicas_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif isinstance(model, Unjudged):
        yield model
    elif data.full_batches_only:
        yield evidence("final batch", "every batch is full")
    elif data.endless:
        yield evidence("final batch", "none, because the dataset is infinite")
    elif not model.normalisations:
        size = "unknown size" if data.final_batch is None else counted(data.final_batch, "example")
        yield evidence("final batch", f"{size}; no layer is affected by an empty replica")
    elif data.final_batch is None or replicas is None:
        yield unknown("final batch", "its size is not known, and the data is too long to count")
    elif not starves(data.final_batch, replicas):
        yield evidence(
            "final batch", f"{counted(data.final_batch, 'example')} feed all of {counted(replicas, 'replica')}"
        )
    else:
        yield finding(
            "final batch",
            f"{counted(data.final_batch, 'example')} over {counted(replicas, 'replica')} leave one empty, and "
            f"{some(model.normalisations)} normalizes the share of each replica",
            "at least one example on every replica, or no final batch",
            _REMEDY,
            brief=f"leaves one of {counted(replicas, 'replica')} empty, so weights become NaN",
        )
