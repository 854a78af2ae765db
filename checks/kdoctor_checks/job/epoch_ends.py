"""An epoch comes to its end."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.job._job import SCENARIO, change, data_of


@check("job.epoch-ends", severity=Severity.WARNING, requires=["job.data-readable"], scenario=SCENARIO)
def epoch_ends(run: SmokeRun) -> Iterator[Outcome]:
    """An epoch comes to its end.

    Why: on data that repeats without end fit never finishes its first epoch, never validates and never saves, unless
    it is told the number of steps.
    Remedy: give fit steps_per_epoch (and kdoctor, too), or leave repeat() out.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    data = data_of(run)
    if isinstance(data, Unjudged):
        yield data
    elif data.endless is None:
        yield Unjudged(subject="data", reason="it does not say how many batches it has, and they are too many to count")
    elif not data.endless:
        many = "many" if data.batches is None else data.batches
        yield Evidence(subject="data", observed=f"{many} batches")
    elif data.steps_per_epoch:
        yield Evidence(subject="data", observed=f"without end; fit takes {data.steps_per_epoch} steps an epoch")
    else:
        yield change(
            "data",
            "it does not end, and no number of steps was given",
            "an end, or steps_per_epoch",
            "Call fit(..., steps_per_epoch=...), and tell kdoctor the number: --steps-per-epoch, or "
            "preflight(..., steps_per_epoch=...). Otherwise leave repeat() out.",
        )
