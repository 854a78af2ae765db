from collections.abc import Iterator

from kdoctor.facts import SmokeRun
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import of_weights
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import finding, unknown
from kdoctor_job.checks.job._options import MOSTLY, PRECISE, TOLERANCE
from kdoctor_job.checks.job._reported import is_noise, of_cause
from kdoctor_job.checks.job._user_model import job_check, replicas_of
from kdoctor_job.facts import JobComparison, JobTraining

_SGD = "your model with plain SGD"
_STRETCHED = 0.25
"""Two replicas make the weights move twice as far, or half as far, if the gradients are reduced incorrectly."""
_MOST_NOISE = 0.5
"""If random numbers change the weights by more than half their way, they may change its length by chance."""
_BRIEF = "weights differ from one device's"
_RANDOM = "random numbers that kdoctor cannot turn off"
_REMEDY = (
    "Return one number per example from the loss function. In train_step, call self.compute_loss, or divide the loss "
    "by the number of replicas."
)
_OWN_REMEDY = (
    "Add up the gradients of the replicas before any step that is not linear. A loss over pairs of examples sees only "
    "those of its replica."
)
_MORE_TIME = "Allow more time (--model-timeout): the cause was not found yet."


@job_check("job.equals-one-device", Severity.ERROR, "job.trains", several=True, answers=["versions.keras-features"])
def equals_one_device(
    run: SmokeRun, training: JobTraining, *, tolerance: float = 0.05, own_tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """The model trained on all replicas matches one device.

    Why: the job trains to other weights on several replicas than on one device, without an error. A custom loss
    function that returns the mean of its batch is R times too large on R replicas: Keras 3 averages numbers per example
    over the global batch, but adds up single numbers. A train_step that ignores the replicas is another cause. kdoctor
    compares copies of the model twice. The first comparison uses the job's own optimizer and options. Adam and most
    others divide by the size of the gradient, which hides one that is too large. So the second one uses SGD, unless the
    job does, or the variables of its optimizer match one device, too. Random layers run in inference mode, and
    BatchNormalization uses the moments of the whole batch. The relative difference is 1e-7 to 3e-4 for rounding, and 1
    for a mean on two replicas. A variable that another order of the examples changes as much is left out.
    Remedy: return one number per example from the loss function, and leave the reduction to Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    if training.own:
        yield _judge_own(run, training, training.own, PRECISE if training.own.precise else own_tolerance)
    if training.own is None or (training.scale_hidden != "" and (training.losses or not training.of_whole_batch)):
        yield _judge_sgd(run, training, PRECISE if training.precise else tolerance)


def _judge_own(run: SmokeRun, training: JobTraining, own: JobComparison, tolerance: float) -> Outcome:
    subject = f"your model with {own.optimizer}"
    if own.not_compared or own.deviation is None:
        return unknown(subject, f"not compared with one device: {own.not_compared or 'the weights are not finite'}")
    if own.rounded_share > MOSTLY:
        reason = f"another order of the examples changes the weights of one device by {own.noise or 0:.2g} as well"
        return unknown(subject, f"{reason}, because of rounding or of {_RANDOM}")
    details = [f"relative difference {own.deviation:.2g} after {counted(training.steps, 'step')}"]
    values = {option.name: option.value for option in training.options}
    details += [f"without {some([values.get(name, name) for name in own.without])}"] if own.without else []
    details += [f"in inference mode: {some(training.stilled)}"] if training.stilled else []
    details += [f"rounding decides {some(own.rounded)}"] if own.rounded else []
    details += ["computed in float64"] if own.precise else []
    details += [f"{training.rows} examples a step, as one device has no memory for more"] if training.rows else []
    difference = f"({'; '.join(details)})"
    if own.deviation <= tolerance:
        needless = " The gradients have the same size" if training.scale_hidden == "" else ""
        observed = f"weights match one device's {difference}.{needless}".removesuffix(".")
        return Evidence(
            subject=subject, observed=observed, brief="" if training.deviation else _short(run, own.deviation)
        )
    observed, expected = f"weights differ from one device's {difference}", f"at most {tolerance:g}"
    if training.deviation is not None and training.deviation <= PRECISE:
        other = f"With plain SGD the weights match: train with another optimizer than {own.optimizer}."
        remedy = f"{other} In your own, add up the gradients of the replicas before any step that is not linear."
    else:
        is_too_large = training.scale_hidden == "" or _is_stretched(training)
        remedy = _REMEDY if is_too_large else _MORE_TIME if _has_ended(run) else _OWN_REMEDY
    return _finding(run, training, subject, observed, expected, remedy)


def _judge_sgd(run: SmokeRun, training: JobTraining, tolerance: float) -> Outcome:
    if training.not_compared or training.deviation is None:
        return unknown(_SGD, f"not compared with one device: {training.not_compared or _unfinished(run)}")
    difference = f"(relative difference {training.deviation:.2g} after {counted(training.steps, 'step')}"
    difference += f"; {training.stretch:.2g} times as far as on one device" if _is_stretched(training) else ""
    difference += f"; in inference mode: {some(training.stilled)})" if training.stilled else ")"
    if training.deviation <= tolerance:
        observed = f"weights match one device's {difference}"
        return Evidence(subject=_SGD, observed=observed, brief=_short(run, training.deviation))
    if is_noise(training.deviation, training.noise) and not _is_stretched(training):
        return unknown(
            _SGD,
            f"another order of the examples changes the weights of one device by {training.noise:.2g} as well, because "
            f"of rounding or of {_RANDOM}",
        )
    observed, expected = f"weights differ from one device's {difference}", f"at most {tolerance:g}"
    return _finding(run, training, _SGD, observed, expected, _REMEDY)


def _finding(run: SmokeRun, training: JobTraining, subject: str, observed: str, expected: str, remedy: str) -> Outcome:
    fix, cause = of_cause(training, remedy)
    return finding(subject, f"{observed}{cause}", expected, fix, brief=f"{_BRIEF}{cause}", explained_by=of_weights(run))


def _is_stretched(training: JobTraining) -> bool:
    """Whether the replicas move the weights another way than one device, beyond what random numbers explain."""
    if training.stretch is None or not abs(training.stretch - 1) > _STRETCHED or (training.noise or 0) > _MOST_NOISE:
        return False
    noise = training.stretch_noise
    return not is_noise(abs(training.stretch - 1), None if noise is None else abs(noise - 1))


def _short(run: SmokeRun, deviation: float) -> str:
    return f"your model on {counted(replicas_of(run), 'replica')} equals one device (within {deviation:.0e})"


def _has_ended(run: SmokeRun) -> bool:
    return bool(run.cases) and run.cases[0].outcome != "trained"


def _unfinished(run: SmokeRun) -> str:
    return describe_end(run.cases[0]) if _has_ended(run) else "the weights are not finite"
