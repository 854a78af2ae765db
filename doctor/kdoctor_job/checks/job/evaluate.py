from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU, of_losses
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._reported import RANDOM, differences, is_random
from kdoctor_job.checks.job._user_model import SCENARIO, replicas_of, training_of

_SUBJECT = "evaluate"
_EXPECTED = "the numbers of one device"
_REMEDY = "Evaluate batches that divide by the number of replicas, or load the model outside strategy.scope() for it."


@check("job.evaluate", severity=Severity.WARNING, requires=["job.trains"], scenario=SCENARIO, explained_by=NO_GPU)
def evaluate(run: SmokeRun, *, tolerance: float = 1e-3) -> Iterator[Outcome]:
    """Evaluate is correct if the final batch does not divide by the number of replicas.

    Why: validation data seldom divides evenly. Then the replicas get shares of different size in the last batch. A
    number that weighs the replicas equally, such as the loss of one of several outputs in Keras 3, is slightly wrong.
    kdoctor calls evaluate with equal weights on the replicas and on one device. Full batches are judged by job.metrics.
    This is a warning because the job may evaluate full batches only.
    Remedy: evaluate batches that divide by the number of replicas.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_output_losses
    """
    training, replicas = training_of(run), replicas_of(run)
    if isinstance(training, Unjudged):
        yield training
        return
    if replicas is None:
        yield unknown(_SUBJECT, "the number of replicas is not known")
        return
    if replicas == 1:
        yield NotApplicable(reason="the job has only one replica")
        return
    uneven = next((one for one in training.evaluations if one.final_batch % replicas), None)
    if uneven is None and training.evaluations:
        yield NotApplicable(reason="evaluate takes full batches only on one device, too, or a replica would be empty")
    elif uneven is None:
        yield unknown(_SUBJECT, f"not compared with one device: {training.not_compared or 'evaluate was not run'}")
    else:
        on = f"with a final batch of {counted(uneven.final_batch, 'example')} over {counted(replicas, 'replica')}"
        wrong = differences(uneven.logs, uneven.reference, uneven.reordered, tolerance)
        if wrong and not uneven.problem and is_random(training):
            yield unknown(_SUBJECT, RANDOM)
        elif uneven.problem or wrong:
            observed = f"{uneven.problem or '; '.join(wrong)} ({on})"
            brief = "differs from one device if the last batch is uneven"
            yield finding(_SUBJECT, observed, _EXPECTED, _REMEDY, brief=brief, explained_by=of_losses(run))
        else:
            yield evidence(_SUBJECT, f"{', '.join(uneven.logs) or 'nothing'}, as on one device {on}")
