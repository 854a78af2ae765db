"""Makes the checks of the user's model and data, and reads the facts about them."""

import errno
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from kdoctor.check import Check, check, text_of
from kdoctor.facts import KernelLog, SmokeCase, SmokeRun, Unavailable
from kdoctor.facts.plausible import plausible
from kdoctor.failures.known import load_failures
from kdoctor.failures.match import find_matches
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor.probes.process.records import build
from kdoctor.text.wrap import shorten
from kdoctor_checks._causes import NO_GPU, of_import
from kdoctor_checks._versions import MOST_CHARACTERS
from kdoctor_checks.smoke._cases import in_phase
from kdoctor_checks.smoke._judging import unknown
from kdoctor_job.facts import JobData, JobFit, JobModel, JobRun, JobStep, JobTraining
from kdoctor_job.own_loop import LOOP
from kdoctor_job.own_model import OWN_MODEL, RESTORE
from kdoctor_job.restore_facts import JobLoop, JobRestore

_CASE = "own-model"
_NO_SPACE = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))
_REFUSED = tuple(map(os.strerror, (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENOTDIR, errno.EEXIST)))
NO_FILE = os.strerror(errno.ENOENT)
CHECK_THE_PATH = "Check the path: a relative one begins in the folder where the job starts."
_RAISED = re.compile(r" raised | ends before any fit: ")
_PLACE = re.compile(r" \([^()]+:\d+\)$")


def case_of(run: SmokeRun) -> SmokeCase | Unjudged:
    """The only case, or why it has no result."""
    return run.case(_CASE) or unknown("job", _no_result(run), of_import(run))


def job_of(run: SmokeRun) -> JobRun:
    """What is known about the job; empty if the case did not come that far."""
    case = run.case(_CASE)
    if case is None or case.job is None:
        return JobRun()
    return case.job if isinstance(case.job, JobRun) else plausible(build(JobRun, case.job))


def _missing(run: SmokeRun, subject: str, reason: str | None = None) -> NotApplicable | Unjudged:
    """What has no value: a loop has no such thing, or why it is not known."""
    if job_of(run).step and not job_of(run).model:
        return NotApplicable(reason="the script trains in a loop (see job.first-step)")
    return unknown(subject, reason or _no_result(run), of_import(run))


def step_of(run: SmokeRun) -> JobStep | NotApplicable | Unjudged:
    """The first step of the script's loop, or why it is not known."""
    job = job_of(run)
    if job.model and not job.step:
        return NotApplicable(reason="the job has no training loop")
    return job.step or _missing(run, "training loop")


def training_call_of(run: SmokeRun) -> JobFit | JobStep | NotApplicable | Unjudged:
    """Where the script trains, or why it is not known."""
    job = job_of(run)
    if job.model and not job.fit:
        return NotApplicable(reason="the model and the data are named, so there is no script")
    return job.fit or job.step or unknown("script", _no_result(run), of_import(run))


def model_of(run: SmokeRun) -> JobModel | NotApplicable | Unjudged:
    """The model, or why it is not known."""
    return job_of(run).model or _missing(run, "model")


def data_of(run: SmokeRun) -> JobData | NotApplicable | Unjudged:
    """The data, or why it was not read."""
    data = job_of(run).data
    if data is None or data.unread is not None:
        return _missing(run, "data", data.unread if data else None)
    return data


def training_of(run: SmokeRun) -> JobTraining | NotApplicable | Unjudged:
    """The training, or why it was not run."""
    training = job_of(run).training
    if training is None or training.not_run is not None:
        return _missing(run, "training", training.not_run if training else None)
    return training


def restore_of(run: SmokeRun) -> JobRestore | NotApplicable | Unjudged:
    """What restoring the job showed, or why it is not known."""
    case = run.case(RESTORE)
    if case is None and run.failure is None:
        return NotApplicable(reason="the job was not saved and restored (--restore DIR)")
    if case is None or case.job is None:
        return unknown("job", case.error_message if case and case.error_message else _no_result(run), of_import(run))
    found = case.job if isinstance(case.job, JobRestore) else plausible(build(JobRestore, case.job))
    return unknown("job", f"it was not trained: {found.not_run}") if found.not_run else found


def loop_of(run: SmokeRun) -> JobLoop | Unjudged:
    """What killing and restoring the job's own loop showed, or why it is not known."""
    case = run.case(LOOP)
    if case is None or case.job is None:
        reason = (case and case.error_message) or run.failure or "the run ended before it had a result"
        return unknown("training loop", reason, of_import(run))
    return case.job if isinstance(case.job, JobLoop) else plausible(build(JobLoop, case.job))


def replicas_of(run: SmokeRun) -> int | None:
    """Number of replicas."""
    case = run.case(_CASE)
    return case.replicas if case else None


def _no_result(run: SmokeRun) -> str:
    case = run.case(_CASE)
    if case is None:
        return run.failure or "the run ended before it had a result"
    if case.outcome == "skipped" and case.skip_reason:
        return case.skip_reason
    how = "out of time: --model-timeout" if case.outcome == "timed-out" else case.outcome
    return f"the job ended {in_phase(case.phase)} ({how})"


def no_room(folder: str) -> Unjudged:
    """What was not tested, because kdoctor's copies filled the disk."""
    return unknown("space", f"{folder} has none left for kdoctor's copies of a save: free some, or name another folder")


def remedy_for(problem: str, otherwise: str, folder: str = "") -> str:
    """The fix of the known failure with that message, or else the other one.

    If the job saves in ``folder``, what its file system refuses needs no other explanation.
    """
    texts = (*_NO_SPACE, *(_REFUSED if folder in problem else ()))
    if folder and any(text in problem for text in texts):
        return f"Make {folder} writable, with space for several saves, or save elsewhere."
    known = (match.known for match in find_matches(problem, load_failures()))
    fixes = next((one.fix for one in known if not one.clue_needed), None)
    return f"{fixes[0].do.rstrip('.:')}." if fixes else otherwise


def headline(problem: str) -> str:
    """An error in few words, and the line of the job's code that raised it."""
    place = _PLACE.search(problem)
    at = place.group() if place else ""
    text = problem.removesuffix(at)
    return f"{shorten(text if len(text) <= MOST_CHARACTERS else _RAISED.split(text)[-1], MOST_CHARACTERS)}{at}"


_READERS: Mapping[str, Callable[[SmokeRun], object]] = {
    "run": lambda run: run,
    "case": case_of,
    "model": model_of,
    "data": data_of,
    "training": training_of,
    "replicas": lambda run: replicas_of(run) or unknown("job", "the number of replicas is not known"),
    "step": step_of,
    "training_call": training_call_of,
    "restore": restore_of,
    "loop": loop_of,
}
"""What a check of the job may ask for, by the names of its parameters."""
_GIVEN: Mapping[str, object] = {"matrix": VersionMatrix, "log": KernelLog | Unavailable}
"""What a check of the job may ask for besides."""
Judge = Callable[..., "Outcome | Iterable[Outcome]"]


_RAISING = ("job.options", "job.clipping", "job.steps-per-execution")
"""Checks that find what ends a job in fit. kdoctor leaves it out, and what it finds then matters afterwards."""


def _raises(run: SmokeRun) -> bool:
    training = job_of(run).training
    return training is not None and any(option.problem for option in training.options)


def job_check(
    id: str,  # noqa: A002 - always passed by position
    severity: Severity,
    *requires: str,
    several: bool = False,
    answers: Sequence[str] = (),
    scenario: str = OWN_MODEL,
) -> Callable[[Judge], Check]:
    """Make a check from a function that asks for facts by its parameters' names. Its docstring is as for ``check``.

    If a fact is not known, that is the outcome, and the function is not called.

    Args:
        id: family and slug.
        severity: the weight of a failure.
        requires: ids of checks that must not have failed.
        several: whether it applies to jobs with several replicas only.
        answers: ids of checks whose warnings it judges for this job.
        scenario: the id of the training that it judges.
    """

    def make(function: Judge) -> Check:
        asked = inspect.signature(function).parameters.values()
        options = [item for item in asked if item.kind is item.KEYWORD_ONLY]
        names = [item.name for item in asked if item.kind is not item.KEYWORD_ONLY]

        @wraps(function)
        def judge(run: SmokeRun, **others: Any) -> Iterator[Outcome]:
            facts = [others.pop(name) if name in _GIVEN else _READERS[name](run) for name in names]
            reason = next((fact for fact in facts if isinstance(fact, Unjudged | NotApplicable)), None)
            if reason is not None:
                yield reason
            elif several and replicas_of(run) == 1:
                yield NotApplicable(reason="the job has only one replica")
            else:
                outcome = function(*facts, **others)
                later = _RAISING if "job.trains" in requires and id not in _RAISING and _raises(run) else ()
                for each in outcome if isinstance(outcome, Iterable) else (outcome,):
                    yield replace(each, after=later) if isinstance(each, Finding) and later else each

        kinds = {"run": SmokeRun, **{name: kind for name, kind in _GIVEN.items() if name in names}}
        facts = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
            for name, kind in kinds.items()
        ]
        vars(judge)["__signature__"] = inspect.Signature([*facts, *options])
        made = check(
            id,
            severity=severity,
            requires=requires,
            scenario=scenario,
            explained_by=NO_GPU,
            answers=answers,
            text=text_of(id, function),
        )
        return made(judge)

    return make
