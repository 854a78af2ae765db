from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobData


@job_check("job.epoch-ends", Severity.WARNING, "job.data-readable")
def epoch_ends(data: JobData) -> Outcome:
    """The dataset is finite, or has the batches of steps_per_epoch.

    Why: on an infinite dataset, fit never finishes its first epoch, never validates and never saves, unless it is given
    steps_per_epoch. With fewer batches than steps_per_epoch, Keras 3 ends every epoch early, and Keras 2 the training,
    with a warning only.
    Remedy: pass steps_per_epoch to fit and to kdoctor, or remove repeat(). Or leave out steps_per_epoch.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    if data.endless is not False and data.steps_per_epoch:
        return evidence("data", f"{counted(data.steps_per_epoch, 'step')} per epoch, of any number of batches")
    if data.batches is not None and data.batches < (data.steps_per_epoch or 0):
        batches = counted(data.batches, "batch", "batches")
        return finding(
            "data",
            f"{batches}, and steps_per_epoch={data.steps_per_epoch}: Keras 3 ends epochs early, Keras 2 the training",
            "steps_per_epoch batches",
            "Leave out steps_per_epoch, or repeat() the data.",
            brief=f"{batches}, fewer than steps_per_epoch",
        )
    if data.endless is None and data.kind != "generator":
        return unknown("data", "it has too many batches to count; if it has no end, fit needs steps_per_epoch")
    if data.endless is False:
        return evidence("data", "many batches" if data.batches is None else counted(data.batches, "batch", "batches"))
    return finding(
        "data",
        f"{'infinite' if data.endless else 'not at its end after 3 s'}, and steps_per_epoch is not set",
        "a finite dataset, or steps_per_epoch",
        "Call fit(..., steps_per_epoch=...), and pass the same number to kdoctor (--steps-per-epoch, or "
        "preflight(..., steps_per_epoch=...)); or remove repeat().",
    )
