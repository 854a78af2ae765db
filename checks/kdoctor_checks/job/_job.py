"""What the checks of the user's own model and data have in common."""

from __future__ import annotations

from kdoctor.facts import JobData, JobModel, JobRun, JobTraining, SmokeCase, SmokeRun
from kdoctor.model import Action, Finding, Remedy, Rollback, Unjudged

SCENARIO = "smoke.own-model"
CASE = "own-model"
LOOKED_ONLY = Rollback.nothing("the model, its data and this machine are as they were")


def case_of(run: SmokeRun) -> SmokeCase | Unjudged:
    """The one case, or why it has no result."""
    case = run.case(CASE)
    return case if case is not None else Unjudged(subject="job", reason=run.failure or "the run ended before it")


def job_of(run: SmokeRun) -> JobRun:
    """What is known of the job; nothing if the case did not come that far."""
    case = run.case(CASE)
    return (case.job if case else None) or JobRun()


def model_of(run: SmokeRun) -> JobModel | Unjudged:
    """The model's facts."""
    return job_of(run).model or Unjudged(subject="model", reason=_ended(run))


def data_of(run: SmokeRun) -> JobData | Unjudged:
    """The data's facts, where it was read."""
    data = job_of(run).data
    if data is None:
        return Unjudged(subject="data", reason=_ended(run))
    return data if data.unread is None else Unjudged(subject="data", reason=data.unread)


def training_of(run: SmokeRun) -> JobTraining | Unjudged:
    """The training's facts, where there was one."""
    training = job_of(run).training
    if training is None:
        return Unjudged(subject="training", reason=_ended(run))
    return training if training.not_run is None else Unjudged(subject="training", reason=training.not_run)


def replicas_of(run: SmokeRun) -> int | None:
    """Number of replicas."""
    case = run.case(CASE)
    return case.replicas if case else None


def share(batch: int, replicas: int) -> int:
    """Examples that each replica but the last ones gets of a batch: it is cut in chunks of that size."""
    return -(-batch // replicas)


def starves(batch: int, replicas: int) -> bool:
    """Whether the last replica gets nothing of the batch."""
    return (replicas - 1) * share(batch, replicas) >= batch


def change(subject: str, observed: str, expected: str, advice: str) -> Finding:
    """A finding whose way out is in the job's code."""
    remedy = Remedy(summary=advice, action=Action.CHANGE_CODE)
    return Finding(subject=subject, observed=observed, expected=expected, remedy=remedy, rollback=LOOKED_ONLY)


def _ended(run: SmokeRun) -> str:
    case = run.case(CASE)
    if case is None:
        return run.failure or "the run ended before it"
    return f"the examination ended in phase {case.phase or 'import'} ({case.outcome})"
