from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_REMEDY = "Give the schedule the steps of the training on all replicas: steps per epoch times epochs."


@job_check("job.schedule", Severity.WARNING, "job.data-readable")
def schedule(model: JobModel) -> Outcome:
    """The learning rate does not become 0 long before the training ends.

    Why: schedules count steps, not epochs. With decay_steps=EPOCHS, or the steps of a smaller dataset, the rate is soon
    0, and the rest of the job changes no weight, without an error.
    Remedy: give it the steps of the training on all replicas. They are fewer if the batch grew with the replicas.
    Source: https://keras.io/api/optimizers/learning_rate_schedules/cosine_decay/
    """
    if not model.schedule:
        return NotApplicable(reason="the job has no learning rate schedule")
    if model.scheduled_steps is None:
        return unknown("learning rate", f"the steps of the training, or the rates of {model.schedule}, are not known")
    steps = counted(model.scheduled_steps, "step")
    if model.zero_from is None:
        return evidence("learning rate", f"{model.schedule} gives no 0 in the first 90 % of {steps}")
    observed = f"{model.schedule} gives 0 from step {model.zero_from} or before, of {steps} that follow from the data"
    brief = f"0 from step {model.zero_from} of {model.scheduled_steps}"
    return finding("learning rate", observed, "0 at the end only", _REMEDY, brief=brief)
