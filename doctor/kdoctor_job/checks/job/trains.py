from collections.abc import Iterator

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import of_end
from kdoctor_checks.smoke._cases import describe_end, format_losses
from kdoctor_checks.smoke._judging import brief_end, finding, unknown
from kdoctor_job.checks.job._user_model import headline, job_check, job_of, remedy_for, training_of

_EXPECTED = "the first steps finish, with finite losses and weights"
_REMEDY = "To reproduce the error, run fit on a few batches under the same strategy."
_BUILD_REMEDY = "Create every optimizer in strategy.scope(), and call optimizer.build(model.trainable_variables) there."
_BUILT_LATE = "You must feed a value for placeholder"
"""Keras 3 raises it if the first step builds an optimizer (keras-team/keras#23085)."""
_BEFORE_STEPS_REMEDY = (
    "Before the first step, Keras calls the model, its loss and its metrics with a mean over the replicas, in which "
    "integers are floats. Let them accept it: cast integers in call, and compile without a loss if there is no target."
)
_UNNAMED = (
    "class_weight, sample_weight, validation_data and callbacks are not examined unless --fit-arguments names them"
)
"""What fit also takes. Weights in the dataset are examined."""
_NAN_REMEDY = "Look for a too large learning rate, a logarithm or division without a floor, and NaN in the data."


@job_check("job.trains", Severity.ERROR, "job.batch-divides")
def trains(run: SmokeRun, case: SmokeCase) -> Iterator[Outcome]:
    """The model finishes its first steps on all replicas and stays finite.

    Why: most errors that stop a job (shapes, memory, a train_step that a strategy refuses) occur in its first steps.
    Remedy: fix the error; fit would raise the same.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    training = training_of(run)
    unfinished = isinstance(training, Unjudged) or not (training.own_losses or training.problem)
    if unfinished and case.outcome in ("died", "timed-out", "raised") and job_of(run).data:
        brief, explained_by = brief_end(case), of_end(run, case)
        yield finding("your model", describe_end(case), _EXPECTED, _REMEDY, brief=brief, explained_by=explained_by)
    elif isinstance(training, Unjudged):
        yield training
    elif training.problem:
        brief = headline(training.problem)
        otherwise = _BEFORE_STEPS_REMEDY if training.raised_before_steps else _REMEDY
        remedy = _BUILD_REMEDY if _BUILT_LATE in training.problem else remedy_for(training.problem, otherwise)
        yield finding("your model", training.problem, _EXPECTED, remedy, brief=brief)
    elif not training.own_losses:
        yield unknown("training", "no step finished")
    elif None in training.own_losses or training.nonfinite:
        nonfinite = f"; NaN or infinity in {some(training.nonfinite)}" if training.nonfinite else ""
        observed = f"losses {format_losses(training.own_losses)}{nonfinite}"
        brief = "losses or weights become NaN in the first steps"
        yield finding("your model", observed, _EXPECTED, _NAN_REMEDY, brief=brief)
    else:
        steps = counted(training.steps, "step")
        failed = [option.value for option in training.options if option.problem]
        steps += f" without {some(failed)}" if failed else ""
        observed = f"{steps}, losses {format_losses(training.own_losses)}"
        brief = "your model trains on 1 replica" if case.replicas == 1 else ""
        yield Evidence(subject="training", observed=observed, brief=brief)
        named = job_of(run).fit_arguments
        observed = f"trained with {some(named)}; callbacks are not examined" if named else _UNNAMED
        yield Evidence(subject="arguments of fit", observed=observed)
