"""The model takes its first steps over all replicas, and stays finite."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.job._job import SCENARIO, case_of, change, job_of, training_of
from kdoctor_checks.smoke._cases import how_it_ended, show

_EXPECTED = "its first steps finish, with finite losses and weights"
_ADVICE = "Call fit on a few batches by hand under the same strategy, and mend what it raises."
_FINITE = "Look for a learning rate that is too large, a logarithm or a division without a floor, and NaN in the data."


@check("job.trains", severity=Severity.ERROR, requires=["job.batch-divides"], scenario=SCENARIO)
def trains(run: SmokeRun) -> Iterator[Outcome]:
    """The model takes its first steps over all replicas, and stays finite.

    Why: most of what stops a job, from shapes to memory to a train_step that a strategy refuses, shows in its first
    steps.
    Remedy: follow the message; it is what fit would raise.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    case, training = case_of(run), training_of(run)
    if isinstance(case, Unjudged):
        yield case
    elif isinstance(training, Unjudged) and case.outcome in ("died", "timed-out", "raised") and job_of(run).data:
        yield change("training", how_it_ended(case), _EXPECTED, _ADVICE)
    elif isinstance(training, Unjudged):
        yield training
    elif training.problem:
        yield change("training", training.problem, _EXPECTED, _ADVICE)
    elif None in training.own_losses or training.nonfinite:
        lost = f"; NaN or infinity in {some(training.nonfinite)}" if training.nonfinite else ""
        yield change("training", f"losses {show(training.own_losses)}{lost}", _EXPECTED, _FINITE)
    else:
        yield Evidence(subject="training", observed=f"{training.steps} steps, losses {show(training.own_losses)}")
