"""Reads the facts about the user's model and data."""

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.facts.plausible import plausible
from kdoctor.model import Unjudged
from kdoctor.probes.process.records import build
from kdoctor_checks._causes import of_import
from kdoctor_checks.smoke._judging import unknown
from kdoctor_job.facts import JobData, JobModel, JobRun, JobTraining

SCENARIO = "smoke.own-model"
_CASE = "own-model"


def case_of(run: SmokeRun) -> SmokeCase | Unjudged:
    """The only case, or why it has no result."""
    return run.case(_CASE) or unknown("job", _no_result(run), of_import(run))


def job_of(run: SmokeRun) -> JobRun:
    """What is known about the job; empty if the case did not come that far."""
    case = run.case(_CASE)
    if case is None or case.job is None:
        return JobRun()
    return case.job if isinstance(case.job, JobRun) else plausible(build(JobRun, case.job))


def model_of(run: SmokeRun) -> JobModel | Unjudged:
    """The model, or why it is not known."""
    return job_of(run).model or unknown("model", _no_result(run), of_import(run))


def data_of(run: SmokeRun) -> JobData | Unjudged:
    """The data, or why it was not read."""
    data = job_of(run).data
    if data is None or data.unread is not None:
        return unknown("data", data.unread if data and data.unread else _no_result(run), of_import(run))
    return data


def training_of(run: SmokeRun) -> JobTraining | Unjudged:
    """The training, or why it was not run."""
    training = job_of(run).training
    if training is None or training.not_run is not None:
        reason = training.not_run if training and training.not_run else _no_result(run)
        return unknown("training", reason, of_import(run))
    return training


def replicas_of(run: SmokeRun) -> int | None:
    """Number of replicas."""
    case = run.case(_CASE)
    return case.replicas if case else None


def _no_result(run: SmokeRun) -> str:
    case = run.case(_CASE)
    if case is None:
        return run.failure or "the run ended before it had a result"
    return f"the case ended in phase {case.phase or 'import'} ({case.outcome})"
