from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks.job._user_model import SCENARIO, case_of, job_of, training_of
from kdoctor_checks.smoke._cases import describe_end, format_losses
from kdoctor_checks.smoke._judging import evidence, finding

_EXPECTED = "the first steps finish, with finite losses and weights"
_REMEDY = "Run fit on a few batches under the same strategy and fix the error it raises."
_NAN_REMEDY = "Look for a too large learning rate, a logarithm or division without a floor, and NaN in the data."


@check("job.trains", severity=Severity.ERROR, requires=["job.batch-divides"], scenario=SCENARIO)
def trains(run: SmokeRun) -> Iterator[Outcome]:
    """The model finishes its first steps on all replicas and stays finite.

    Why: most errors that stop a job (shapes, memory, a train_step that a strategy refuses) occur in its first steps.
    Remedy: fix the error; fit would raise the same.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    case, training = case_of(run), training_of(run)
    if isinstance(case, Unjudged):
        yield case
    elif isinstance(training, Unjudged) and case.outcome in ("died", "timed-out", "raised") and job_of(run).data:
        yield finding("training", describe_end(case), _EXPECTED, _REMEDY)
    elif isinstance(training, Unjudged):
        yield training
    elif training.problem:
        yield finding("training", training.problem, _EXPECTED, _REMEDY)
    elif None in training.own_losses or training.nonfinite:
        nonfinite = f"; NaN or infinity in {some(training.nonfinite)}" if training.nonfinite else ""
        yield finding("training", f"losses {format_losses(training.own_losses)}{nonfinite}", _EXPECTED, _NAN_REMEDY)
    else:
        steps = counted(training.steps, "step")
        yield evidence("training", f"{steps}, losses {format_losses(training.own_losses)}")
