from collections.abc import Iterator

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import of_end
from kdoctor_checks.smoke._cases import describe_end, format_losses
from kdoctor_checks.smoke._judging import brief_end, finding, unknown
from kdoctor_job.checks.job._user_model import headline, job_check, job_of, remedy_for, training_of
from kdoctor_job.facts import JobData, JobTraining

_EXPECTED = "the first steps train, with finite losses and weights"
_ODD_REMEDY = "Make the parts of that batch as those of the others: one shape, and one number of inputs and targets."
_FROZEN_REMEDY = "Set trainable = True for what fit is to train, before compile."
_REMEDY = "To reproduce the error, run fit on a few batches under the same strategy."
_ALONE_REMEDY = (
    "One device trains it. Replicas get a share of each part of a batch, cut along its first axis: let that axis be "
    "the examples, take sizes from tf.shape, and let only the optimizer assign weights."
)
_NOT_ALONE_REMEDY = "One device raises an error, too: run fit on a few batches without a strategy, and fix that first."
_BEFORE_STEPS_REMEDY = (
    "Before the first step, Keras calls the model, its loss and its metrics with a mean over the replicas, in which "
    "integers are floats. Let call take x as the data gives it, cast integers, and compile no loss without targets."
)
_SHARE_REMEDY = (
    "One device trains these batches, but not the shares of a replica, cut along the first axis. Let that axis be the "
    "examples, and take sizes from tf.shape, or divide them by strategy.num_replicas_in_sync."
)
_SYNCHRONIZES_REMEDY = (
    "Replicas cannot add up gradients inside tf.cond, a loop or a tf.function: call the optimizer in every step, in "
    "train_step itself. Instead of adding up the gradients of several batches, use larger batches."
)
_UNNAMED = (
    "class_weight, sample_weight, validation_data and callbacks are not examined unless --fit-arguments names them"
)
"""What fit also takes. Weights in the dataset are examined."""
_CALLBACK_REMEDY = "Change that callback so that Keras takes it, or leave it out."
_DATA_REMEDY = "Leave those examples out, or fill their gaps, before fit: one such batch makes all weights NaN."
_NAN_REMEDY = "Look for a too large learning rate, a logarithm or division without a floor, and NaN in the data."


@job_check("job.trains", Severity.ERROR, "job.batch-divides")
def trains(run: SmokeRun, case: SmokeCase) -> Iterator[Outcome]:
    """The model finishes its first steps on all replicas and stays finite.

    Why: most errors that stop a job (shapes, memory, a train_step that a strategy refuses) occur in its first steps, at
    a batch with NaN or a rare label, which is searched for, or after its first epoch: the hooks of Keras's callbacks
    are called for two epochs here, with their files in a temporary folder.
    Remedy: fix the error; fit would raise the same.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    training, data = training_of(run), job_of(run).data
    unfinished = not (isinstance(training, JobTraining) and (training.own_losses or training.problem))
    if unfinished and case.outcome in ("died", "timed-out", "raised") and data:
        brief, explained_by = brief_end(case), of_end(run, case)
        yield finding("your model", describe_end(case), _EXPECTED, _REMEDY, brief=brief, explained_by=explained_by)
    elif not isinstance(training, JobTraining):
        yield training
    elif training.problem:
        brief = headline(training.problem)
        remedy = _remedy(training, training.problem, data)
        yield finding("your model", training.problem, _EXPECTED, remedy, brief=brief)
    elif training.odd_problem:
        brief = headline(training.odd_problem)
        yield finding("your model", training.odd_problem, _EXPECTED, _ODD_REMEDY, brief=brief)
    elif training.ended_by:
        brief, remedy = headline(training.ended_by), remedy_for(training.ended_by, _CALLBACK_REMEDY)
        yield finding("callbacks", training.ended_by, "callbacks raise no error", remedy, brief=brief)
    elif training.frozen:
        yield finding("your model", "none of its variables is trainable", _EXPECTED, _FROZEN_REMEDY)
    elif not training.own_losses:
        yield unknown("training", "no step finished")
    elif None in training.own_losses or training.nonfinite:
        nonfinite = f"; NaN or infinity in {some(training.nonfinite)}" if training.nonfinite else ""
        observed = f"losses {format_losses(training.own_losses)}{nonfinite}"
        brief, remedy = "losses or weights become NaN in the first steps", _NAN_REMEDY
        if data and data.nonfinite:
            observed = f"{data.nonfinite} of the data holds NaN or infinity, with which the {observed}"
            brief, remedy = f"{data.nonfinite} of the data makes losses or weights NaN", _DATA_REMEDY
        yield finding("your model", observed, _EXPECTED, remedy, brief=brief)
    else:
        steps = counted(training.steps, "step")
        failed = [option.value for option in training.options if option.problem]
        steps += f" (without: {some(failed)})" if failed else ""
        observed = f"{steps}, losses {format_losses(training.own_losses)}"
        brief = "your model trains on 1 replica" if case.replicas == 1 else ""
        yield Evidence(subject="training", observed=observed, brief=brief)
        named = job_of(run).fit_arguments
        observed = f"trained with {some(named)}; own callbacks are read, not run" if named else _UNNAMED
        yield Evidence(subject="arguments of fit", observed=observed)


def _remedy(training: JobTraining, problem: str, data: JobData | None) -> str:
    """What to do about the error. Options that raise it were left out before, so it is not theirs."""
    if "`merge_call`" in problem:
        return _SYNCHRONIZES_REMEDY
    return remedy_for(problem, _SHARE_REMEDY if training.trains_share is False else _unnamed(training, data))


def _unnamed(training: JobTraining, data: JobData | None) -> str:
    if training.trains_alone is False:
        return _NOT_ALONE_REMEDY
    if training.raised_before_steps and len(data.parts if data else ()) <= 1:
        return _BEFORE_STEPS_REMEDY
    return _ALONE_REMEDY if training.trains_alone else _REMEDY
