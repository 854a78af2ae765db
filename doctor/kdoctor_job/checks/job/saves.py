from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import job_check, job_of
from kdoctor_job.facts import JobModel

_REMEDY = 'Change that call as the error says, such as model.save("model.keras").'


@job_check("job.saves", Severity.ERROR, "job.model-and-data")
def saves(run: SmokeRun, model: JobModel) -> Outcome:
    """The script can save its model after fit.

    Why: a path that Keras refuses, or a layer that cannot be saved, ends the job without its model when it is trained.
    Nothing after fit runs here, so each save that certainly follows is tried with a small model.
    Remedy: change that call as the error says, such as model.save("model.keras").
    Source: https://keras.io/api/models/model_saving_apis/model_saving_and_loading/
    """
    fit = job_of(run).fit
    if fit is None:
        return NotApplicable(reason="the model and the data are named, so there is no script")
    if not fit.save:
        return NotApplicable(reason=f"no save that certainly follows {fit.place} was found")
    if not fit.save_error:
        return evidence("script", f"the save of {model.name} in {fit.save} works with a small model")
    brief = f"the save after fit will raise an error ({fit.save})"
    return finding("script", f"{fit.save_error} ({fit.save})", "a save that works", _REMEDY, brief=brief)
