from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, data_of


@check(
    "job.epoch-ends", severity=Severity.WARNING, requires=["job.data-readable"], scenario=SCENARIO, explained_by=NO_GPU
)
def epoch_ends(run: SmokeRun) -> Iterator[Outcome]:
    """The dataset is finite, or steps_per_epoch is set.

    Why: on an infinite dataset, fit never finishes its first epoch, never validates and never saves, unless it is given
    steps_per_epoch.
    Remedy: pass steps_per_epoch to fit and to kdoctor, or remove repeat().
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    data = data_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.endless is None:
        yield unknown("data", "its number of batches is not known, and it has too many to count")
    elif not data.endless:
        yield evidence("data", "many batches" if data.batches is None else counted(data.batches, "batch", "batches"))
    elif data.steps_per_epoch:
        yield evidence("data", f"infinite, with {counted(data.steps_per_epoch, 'step')} per epoch")
    else:
        yield finding(
            "data",
            "infinite, and steps_per_epoch is not set",
            "a finite dataset, or steps_per_epoch",
            "Call fit(..., steps_per_epoch=...), and pass the same number to kdoctor (--steps-per-epoch, or "
            "preflight(..., steps_per_epoch=...)); or remove repeat().",
        )
