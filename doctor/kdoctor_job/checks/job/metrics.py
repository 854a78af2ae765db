from collections.abc import Iterator

from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import some
from kdoctor_checks._causes import of_losses
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._reported import RANDOM, differences, is_random, of_cause, of_evaluation
from kdoctor_job.checks.job._user_model import job_check, job_of, replicas_of
from kdoctor_job.facts import JobTraining, Logs

_EXPECTED = "the numbers of one device"
_OF_WEIGHTS = ("job.equals-one-device",)
_VALIDATION = "val_"
_TO_UPDATE = (
    "In train_step, update each of self.metrics: update_state(loss) of the one named loss, and update_state(y, y_pred) "
    "of the others."
)
_VALIDATION_REMEDY = (
    "Validate on batches that divide by the number of replicas, with Keras metrics made in strategy.scope()."
)
_REMEDY = (
    "Use Keras metrics made in strategy.scope(), in train_step, too. An own metric may only use assign_add, of a sum "
    "over examples that does not depend on others of their batch, because replicas are added up."
)
_PART_REMEDY = "Multiply losses by the number of replicas before metrics, also in test_step: Keras 3 divides them."


@job_check("job.metrics", Severity.ERROR, "job.trains", several=True)
def metrics(run: SmokeRun, training: JobTraining, *, tolerance: float = 0.01) -> Iterator[Outcome]:
    """The metrics that fit and evaluate report match one device.

    Why: early stopping, checkpoints and learning rates that follow a metric use its value. A metric that is summed or
    reported by one replica, or that a custom train_step never updates, is wrong without an error. kdoctor compares the
    metrics of the job's first steps, and of evaluate with full batches and equal weights. The loss of fit has a
    separate check, job.reported-loss.
    Remedy: use a Keras metric, whose variables are added up over the replicas.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    yield _judge_fit(run, training, tolerance)
    unread = job_of(run).validation_unread
    if unread:
        yield unknown("validation", f"validation_data was not read: {unread}")
    yield from _judge_validation(run, training, tolerance)
    yield from _judge_evaluate(run, training, tolerance)


def _judge_fit(run: SmokeRun, training: JobTraining, tolerance: float) -> Outcome:
    own = training.own
    if own is None or own.not_compared or not own.logs:
        reason = (own.not_compared if own else training.not_compared) or "it was not run"
        return unknown("fit", f"its metrics were not compared with one device: {reason}")
    without_loss = {name: value for name, value in own.logs.items() if _is_metric(name)}
    reference = {name: value for name, value in own.reference_logs.items() if _is_metric(name)}
    wrong = differences(without_loss, reference, own.reordered_logs, tolerance)
    if own.deviation is None or own.deviation > tolerance:
        return unknown("fit", "its weights differ from one device's, so its metrics do, too", _OF_WEIGHTS)
    if wrong and is_random(training):
        return unknown("fit", RANDOM)
    if wrong:
        remedy = _remedy(run, without_loss, reference, tolerance)
        return finding("fit", "; ".join(wrong), _EXPECTED, remedy, brief=wrong[0], explained_by=of_losses(run))
    if own.logs.get("loss") == 0 and all(value == 0 for value in without_loss.values()):
        brief = f"reports 0 in each step: {some(['loss', *without_loss])}"
        return finding("fit", brief, "the numbers of the steps", _TO_UPDATE, brief=brief)
    listed = ", ".join(without_loss) or "no metrics besides the loss"
    return evidence("fit", f"{listed}{', as on one device' if without_loss else ''}")


def _remedy(run: SmokeRun, logs: Logs, reference: Logs, tolerance: float, otherwise: str = _REMEDY) -> str:
    """What to do if every number that differs is that of one device, divided by the number of replicas; or else."""
    parts = {
        name: one for name, one in logs.items() if differences({name: one}, {name: reference.get(name)}, {}, tolerance)
    }
    wholes = {name: one and one * (replicas_of(run) or 1) for name, one in parts.items()}
    others = differences(wholes, {name: reference.get(name) for name in parts}, {}, tolerance)
    return otherwise if others or not parts else _PART_REMEDY


def _is_metric(name: str) -> bool:
    return name != "loss" and not name.startswith(_VALIDATION)


def _judge_validation(run: SmokeRun, training: JobTraining, tolerance: float) -> Iterator[Outcome]:
    """What fit reports for validation_data; nothing if the job has none, or its weights differ."""
    own = training.own
    if own is None or own.deviation is None or own.deviation > tolerance:
        return
    logs = {name: value for name, value in own.logs.items() if name.startswith(_VALIDATION)}
    reference = {name: value for name, value in own.reference_logs.items() if name.startswith(_VALIDATION)}
    wrong = differences(logs, reference, own.reordered_logs, tolerance)
    if wrong and is_random(training):
        yield unknown("validation", RANDOM)
    elif wrong:
        remedy, explained = _remedy(run, logs, reference, tolerance, _VALIDATION_REMEDY), of_evaluation(run, wrong)
        yield finding("validation", "; ".join(wrong), _EXPECTED, remedy, brief=wrong[0], explained_by=explained)
    elif logs:
        yield evidence("validation", f"{', '.join(logs)}, as on one device")


def _judge_evaluate(run: SmokeRun, training: JobTraining, tolerance: float) -> Iterator[Outcome]:
    full = max(training.evaluations, key=lambda one: one.final_batch, default=None)
    if full is None:
        return
    wrong = differences(full.logs, full.reference, full.reordered, tolerance)
    if wrong and not full.problem and is_random(training):
        yield unknown("evaluate", RANDOM)
    elif full.problem or wrong:
        brief = "raises" if full.problem else wrong[0]
        observed = full.problem or "; ".join(wrong)
        fix, cause = of_cause(training, _remedy(run, full.logs, full.reference, tolerance))
        explained = of_evaluation(run, wrong)
        yield finding("evaluate", observed, _EXPECTED, fix, brief=f"{brief}{cause}", explained_by=explained)
    else:
        yield evidence("evaluate", f"{', '.join(full.logs) or 'nothing'}, as on one device")
