from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check, job_of
from kdoctor_job.facts import JobTraining

_RATES = ("learning_rate", "lr")
"""What callbacks of Keras add to the numbers of an epoch."""

_HISTORY = "history"
"""What fit returns to the script."""


@job_check("job.monitors", Severity.WARNING, "job.trains")
def monitors(run: SmokeRun, training: JobTraining) -> Outcome:
    """Callbacks, and what follows fit, read numbers that fit reports.

    Why: with another name, such as val_acc where fit reports val_accuracy, ModelCheckpoint(save_best_only=True) never
    saves and EarlyStopping never stops. With a mode, Keras warns once an epoch, and the job goes on; without one,
    Keras 3 raises (job.trains). A script that reads history.history["acc"] ends there with a KeyError.
    Remedy: monitor a number that fit reports. Numbers with val_ need validation_data.
    Source: https://keras.io/api/callbacks/model_checkpoint/
    """
    job = job_of(run)
    if job.monitored is None:
        return NotApplicable(reason="its callbacks may add numbers")
    read = {**job.monitored, **dict.fromkeys(job.fit.history if job.fit else (), _HISTORY)}
    if not read:
        return NotApplicable(reason="no callback was given that monitors a number")
    if training.own is None or not training.own.logs:
        return unknown("callbacks", "the numbers that fit reports are not known")
    names = [name for name in training.own.logs if not name.startswith("val_")]
    validates = {"validation_data", "validation_split"} & set(job.fit_arguments)
    reported = [*names, *(f"val_{name}" for name in names if validates)]
    wrong = {name: callback for name, callback in read.items() if name not in (*reported, *_RATES)}
    if not wrong:
        return evidence("callbacks", f"they read {some(list(read))}, which fit reports")
    name, callback = next(iter(wrong.items()))
    brief = f"{callback} reads {name}, which fit does not report"
    observed = "; ".join(f"{callback} reads {name}" for name, callback in wrong.items())
    fix = f"Read one of the numbers that fit reports: {some(reported, 6)}."
    part = "script" if callback == _HISTORY else "callbacks"
    return finding(part, f"{observed}: fit reports {some(reported, 6)}", "a number of fit", fix, brief=brief)
