import re
from collections.abc import Iterator

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import of_end
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import TENSORFLOW, brief_end, evidence, finding, unknown
from kdoctor_job.checks.job._user_model import CHECK_THE_PATH, NO_FILE, headline, job_check, job_of, remedy_for
from kdoctor_job.facts import JobRun

_EXPECTED = {
    "script": "a script that trains a Keras model",
    "model": "a function without arguments that returns a Keras model",
    "data": "a function without arguments that returns a dataset, a PyDataset, arrays or a generator",
    "arguments of fit": "one that fit takes together with this data",
}
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)")
_REMEDY = "To reproduce the error, run your code in the same environment and folder."
_WAITS = (
    "See what it waits for there: a file, a server, a lock. If it only takes long, allow more time (--model-timeout)."
)
_MAKE_THE_FILE = (
    "Make the file first, or check its path, which begins in the notebook's folder: shell commands, and cells that "
    "write a file, are left out."
)


@job_check("job.model-and-data", Severity.ERROR, *TENSORFLOW, answers=["versions.keras-features"])
def model_and_data(run: SmokeRun, case: SmokeCase) -> Iterator[Outcome]:
    """The model and the data can be created.

    Why: an error before the first step would otherwise show only after the wait in the job queue.
    Remedy: fix the error. A script runs as usual, up to its fit. Functions are called without arguments, in the
    strategy's scope and in the working directory. With --model, a MirroredStrategy that the job makes is that
    strategy; a function that enters its scope is called outside of it. Settings of devices, such as
    set_memory_growth, have no effect before the job makes a strategy.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    job = job_of(run)
    if job.problem:
        message, expected = job.problem.message, _EXPECTED[job.problem.part]
        brief = headline(message)
        fix = job.problem.fix or (_to_reproduce(message) if job.problem.raised else f"Make it {expected}.")
        remedy = remedy_for(message, fix)
        yield finding(job.problem.part, message, expected, remedy, brief=brief)
    elif job.model and job.data:
        yield evidence("model", job.model.name)
        yield evidence("data", job.data.kind)
        if job.strategy is not None:
            yield _of_strategy(job, run, case)
    elif job.step:
        yield evidence("script", f"it trains in a loop: its first step ({job.step.name}) is examined")
        yield _of_strategy(job, run, case)
    elif case.outcome == "trained":
        yield unknown("job", "no model was given: kdoctor check --model train.py")
    elif case.outcome == "skipped":
        yield unknown("job", case.skip_reason or "it was not examined")
    elif case.outcome == "timed-out" and case.phase == "script":
        yield unknown("script", f"no fit yet, allow more time (--model-timeout): it {describe_end(case)}")
    else:
        part = case.phase if case.phase in _EXPECTED else "job"
        yield finding(
            part,
            describe_end(case),
            _EXPECTED.get(part, "model and data can be created"),
            _WAITS if case.outcome == "timed-out" else _REMEDY,
            brief=brief_end(case),
            explained_by=of_end(run, case),
        )


def _to_reproduce(message: str) -> str:
    missing = _MISSING.search(message)
    if missing is None:
        return _REMEDY if NO_FILE not in message else _MAKE_THE_FILE if ".ipynb:cell " in message else CHECK_THE_PATH
    package = f"the package of {missing[1]}" if "." in missing[1] else missing[1]  # of google.colab, google is there
    return f"Install {package} in the environment that is examined, or name the job's environment with --python."


def _of_strategy(job: JobRun, run: SmokeRun, case: SmokeCase) -> Evidence:
    """What the job makes, in place of which it was examined on these replicas."""
    brief, replicas = "", counted(case.replicas or 0, "replica")
    if job.strategy == "" and case.replicas != 1:
        brief = "the script makes no strategy" + (" without GPUs" if run.devices_kind == "cpu" else "")
    elif job.devices not in (None, case.replicas):
        brief = f"the job names {counted(job.devices or 0, 'device')}, examined on {replicas}"
    instead = "" if job.strategy in ("", case.strategy) else f" in place of {job.strategy}: one worker is examined"
    return Evidence(subject="strategy", observed=brief or f"{case.strategy} over {replicas}{instead}", brief=brief)
