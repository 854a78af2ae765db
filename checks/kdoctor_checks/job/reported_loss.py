from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._causes import of_losses
from kdoctor_checks.job._user_model import SCENARIO, replicas_of, training_of
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_checks.smoke._judging import evidence, finding, losses_match, unknown

_REMEDY = "Multiply the loss that a custom train_step reports by tf.distribute.get_strategy().num_replicas_in_sync."


@check("job.reported-loss", severity=Severity.INFO, requires=["job.equals-one-device"], scenario=SCENARIO)
def reported_loss(run: SmokeRun, *, tolerance: float = 0.01) -> Iterator[Outcome]:
    """The loss that fit reports matches one device.

    Why: Keras 3 divides the loss of a replica by the number of replicas before the gradients are summed. A custom
    train_step that reports this loss shows it too small by that factor, although the weights are correct.
    Remedy: report the loss multiplied by the number of replicas.
    Source: https://github.com/keras-team/keras/blob/master/keras/src/backend/tensorflow/trainer.py
    """
    training, replicas = training_of(run), replicas_of(run)
    if isinstance(training, Unjudged):
        yield training
    elif replicas == 1:
        yield NotApplicable(reason="the job has only one replica")
    elif training.not_compared or len(training.losses) != len(training.reference_losses) or not training.losses:
        yield unknown("loss", "it was not compared with one device")
    elif losses_match(training.losses, training.reference_losses, tolerance):
        yield evidence("loss", f"{format_losses(training.losses)}, as on one device")
    else:
        observed = f"{format_losses(training.losses)} instead of {format_losses(training.reference_losses)}"
        yield finding(
            "loss",
            observed,
            "the losses of one device",
            _REMEDY,
            brief="fit reports another loss than on one device",
            explained_by=of_losses(run),
        )
