from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import of_losses
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_checks.smoke._judging import evidence, finding, losses_match, unknown
from kdoctor_job.checks.job._reported import RANDOM, is_random
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobTraining

_REMEDY = "Multiply the loss that a custom train_step reports by tf.distribute.get_strategy().num_replicas_in_sync."


@job_check("job.reported-loss", Severity.INFO, "job.equals-one-device", several=True)
def reported_loss(run: SmokeRun, training: JobTraining, *, tolerance: float = 0.01) -> Outcome:
    """The loss that fit reports matches one device.

    Why: Keras 3 divides the loss of a replica by the number of replicas before the gradients are summed. A custom
    train_step that reports this loss shows it too small by that factor, although the weights are correct.
    Remedy: report the loss multiplied by the number of replicas.
    Source: https://github.com/keras-team/keras/blob/master/keras/src/backend/tensorflow/trainer.py
    """
    losses, reference = training.losses, training.reference_losses
    own = training.own
    if not losses and own and not own.not_compared and {"loss"} <= own.logs.keys() & own.reference_logs.keys():
        losses, reference = (own.logs["loss"],), (own.reference_logs["loss"],)
    if len(losses) != len(reference) or not losses:
        return unknown("loss", "it was not compared with one device")
    if losses_match(losses, reference, tolerance):
        return evidence("loss", f"{format_losses(losses)}, as on one device")
    if is_random(training):
        return unknown("loss", RANDOM)
    observed = f"{format_losses(losses)} instead of {format_losses(reference)}"
    brief = "fit reports another loss than on one device"
    return finding("loss", observed, "the losses of one device", _REMEDY, brief=brief, explained_by=of_losses(run))
