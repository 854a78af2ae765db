from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._reported import RANDOM, differences, is_random, of_evaluation
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobTraining

_SUBJECT = "evaluate"
_EXPECTED = "the numbers of one device"
_OF_FULL_BATCHES = 0.01
"""Tolerance of job.metrics."""
_REMEDY = "Evaluate batches that divide by the number of replicas, or load the model outside strategy.scope() for it."


@job_check("job.evaluate", Severity.WARNING, "job.trains", several=True)
def evaluate(run: SmokeRun, training: JobTraining, replicas: int, *, tolerance: float = 1e-3) -> Outcome:
    """Evaluate is correct if the final batch does not divide by the number of replicas.

    Why: validation data seldom divides evenly. Then the replicas get shares of different size in the last batch. A
    number that weighs the replicas equally, such as the loss of one of several outputs in Keras 3, is slightly wrong.
    kdoctor calls evaluate with equal weights on the replicas and on one device. Full batches are judged by job.metrics.
    This is a warning because the job may evaluate full batches only.
    Remedy: evaluate batches that divide by the number of replicas.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_output_losses
    """
    uneven = next((one for one in training.evaluations if one.final_batch % replicas), None)
    if uneven is None:
        return _not_compared(training)
    on = f"with a final batch of {counted(uneven.final_batch, 'example')} over {counted(replicas, 'replica')}"
    wrong = differences(uneven.logs, uneven.reference, uneven.reordered, max(tolerance, 2 * uneven.last_bit))
    if wrong and not uneven.problem and is_random(training):
        return unknown(_SUBJECT, RANDOM)
    if uneven.problem or wrong:
        observed = f"{uneven.problem or '; '.join(wrong)} ({on})"
        brief = "differs from one device if the last batch is uneven"
        full = next((one for one in training.evaluations if not one.final_batch % replicas), uneven)
        also = differences(full.logs, full.reference, full.reordered, _OF_FULL_BATCHES)
        named, also_named = ({text.partition(" is ")[0] for text in texts} for texts in (wrong, also))
        of_numbers = ("job.metrics",) if full is not uneven and wrong and named <= also_named else ()
        explained_by = (*of_evaluation(run, wrong), *of_numbers)
        return finding(_SUBJECT, observed, _EXPECTED, _REMEDY, brief=brief, explained_by=explained_by)
    return evidence(_SUBJECT, f"{', '.join(uneven.logs) or 'nothing'}, as on one device {on}")


def _not_compared(training: JobTraining) -> Outcome:
    if training.evaluations:
        return NotApplicable(reason="evaluate takes full batches only on one device, too, or a replica would be empty")
    if training.evaluate_raises:
        return NotApplicable(reason=f"evaluate raises on one device, too: {training.evaluate_raises}")
    return unknown(_SUBJECT, f"not compared with one device: {training.not_compared or 'evaluate was not run'}")
