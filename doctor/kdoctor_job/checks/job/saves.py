from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import headline, job_check
from kdoctor_job.facts import JobFit, JobStep

_REMEDY = 'Change that call as the error says, such as model.save("model.keras").'


@job_check("job.saves", Severity.ERROR, "job.model-and-data")
def saves(training_call: JobFit | JobStep) -> Outcome:
    """The script can save its model after the training.

    Why: a path that Keras refuses, or a layer that cannot be saved, ends the job without its model when it is trained.
    Nothing after the training runs here, so each save that certainly follows is tried with a small model.
    Remedy: change that call as the error says, such as model.save("model.keras").
    Source: https://keras.io/api/models/model_saving_apis/model_saving_and_loading/
    """
    save = training_call.save
    if save is None:
        return NotApplicable(reason="no save that certainly follows the training was found")
    if not save.error:
        return evidence("script", f"the save in {save.place} works with a small model")
    observed = f"{save.error} ({save.place})"
    return finding("script", observed, "a save that works", _REMEDY, brief=headline(observed))
