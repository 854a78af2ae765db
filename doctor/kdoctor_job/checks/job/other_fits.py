from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import some
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._user_model import job_check, job_of
from kdoctor_job.facts import JobModel


@job_check("job.other-fits", Severity.WARNING, "job.model-and-data")
def other_fits(run: SmokeRun, model: JobModel) -> Outcome:
    """The script has one call of fit, which is the one that was examined.

    Why: a script that trains in phases, such as a frozen model and then all of it, compiles and calls fit again. One
    call of fit is examined, so an error of another one would show up hours later. Calls are found in the text of the
    file: those of the same object, and those with arguments that only Keras has. Calls in a loop count as one.
    Remedy: examine the next one, too: kdoctor check --model train.py --fit 2. The calls before it train one step,
    without callbacks.
    Source: https://keras.io/guides/transfer_learning/
    """
    fit = job_of(run).fit
    if fit is None:
        return NotApplicable(reason="the model and the data are named, so there is no script")
    subject, place = "script", f"{model.name}.fit in {fit.place}"
    if not fit.others:
        return evidence(subject, f"{place} is examined, and no other one follows")
    brief = f"another fit was not examined ({fit.others[0]})"
    observed = f"{place} was examined, and others were not: {some(list(fit.others), 4)}"
    remedy = Remedy.change_code("Examine it, too:", f"kdoctor check --fit {fit.number + 1}")
    return finding(subject, observed, "every fit is examined", remedy, brief=brief)
