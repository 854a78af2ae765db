import shlex
from collections.abc import Iterator
from pathlib import PurePath

from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import finding, unknown
from kdoctor_job.checks.job._user_model import headline, job_check, no_room, remedy_for
from kdoctor_job.own_loop import SCENARIO
from kdoctor_job.restore_facts import JobGoingOn, JobLoop

_LOOP, _HALF = "training loop", "half-written save"
_SAME = "the numbers of the run that was not killed"
_TO_BEGIN = (
    "Begin the loop with its newest save: tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)."
    "restore_or_initialize(), or the newest file that loads."
)
_TO_STATE = (
    "Save all that the next step needs: model, optimizer, step, generators of random numbers, and the position in the "
    "data (tf.train.Checkpoint(iterator=iterator), or dataset.skip)."
)
_TO_HALF = "Keep the save before, and write each under another name that it gets when it is complete."


@job_check("job.loop-resumes", Severity.ERROR, scenario=SCENARIO.id, answers=["versions.keras-features"])
def loop_resumes(loop: JobLoop) -> Iterator[Outcome]:
    """The job's own training loop goes on after a kill as if it had not been killed.

    Why: what a loop does not save, such as the optimizer, the position in the data or the step of a schedule, shows in
    the next losses, and only if someone compares them. With --loop and --restore, kdoctor runs the loop twice without a
    kill, kills it between two steps and in a save, and lets it go on in fresh processes. What it yields must be what it
    yielded without the kill, from some step on. A difference counts if it exceeds ten times the one between the two
    runs without a kill. Of several workers, the first one is killed, and what it yields is compared.
    What the loop computes is not compared with one device.
    Remedy: restore model, optimizer, step and data together.
    Source: https://www.tensorflow.org/guide/checkpoint
    """
    for folder in loop.left_behind:
        brief = f"a killed kdoctor left {PurePath(folder).name}"
        yield Evidence(subject=folder, observed=f"{brief}: rm -r {shlex.quote(folder)}", brief=brief)
    problem = loop.save_problem or loop.problem
    if problem:
        subject = "saving" if loop.save_problem else _LOOP
        remedy, brief = remedy_for(problem, "To reproduce the error, run the loop.", loop.folder), headline(problem)
        yield finding(subject, problem, "the loop trains and saves", remedy, brief=brief)
    elif loop.noise is None or not loop.steps:
        yield unknown(_LOOP, "it yielded nothing")
    elif loop.unsaved:
        reason = f"it saved nothing in {counted(loop.steps, 'step')}: use more --steps, or save more often"
        yield unknown(_LOOP, reason)
    elif loop.killed_after is None:
        reason = f"two runs differ by {loop.noise:.2g}, so that a loop that begins again could not be seen"
        yield unknown(_LOOP, f"{reason}: give its random numbers a seed, and yield the loss of each step")
    else:
        yield from _judge(loop)


def _judge(loop: JobLoop) -> Iterator[Outcome]:
    if loop.no_room:
        yield no_room(loop.folder)
    yield _gone_on(_LOOP, loop.load, f"after a kill {_after(loop.killed_after)}", _TO_STATE)
    if loop.load is None or loop.load.problem or not loop.load.after or loop.load.differs:
        yield unknown(_HALF, "a complete save does not come back, either")
    else:
        yield _gone_on(_HALF, loop.half, f"after a kill in a save of {loop.half_file or 'a file'}", _TO_HALF)


def _gone_on(subject: str, found: JobGoingOn | None, after: str, fix: str) -> Outcome:
    if found is None:
        return unknown(subject, "no save began, or going on had no result")
    if found.problem:
        remedy = remedy_for(found.problem, fix)
        return finding(subject, f"{after}: {found.problem}", "it goes on", remedy, brief="does not go on after a kill")
    if found.after == 0:
        observed = f"{after}, it begins with its first step"
        return finding(subject, observed, _SAME, _TO_BEGIN, brief="begins again after a kill")
    if found.after is None or found.differs is not None:
        observed = f"{after}, its numbers are those of no step"
        if found.after is not None:
            observed = f"{after}, it goes on {_after(found.after)}, and has other numbers from step {found.differs} on"
        return finding(subject, observed, _SAME, fix, brief="goes on differently after a kill")
    observed = f"{after}, it goes on {_after(found.after)} with the same numbers"
    brief = "your loop goes on after a kill with the same numbers" if subject == _LOOP else ""
    return Evidence(subject=subject, observed=observed, brief=brief)


def _after(step: int | None) -> str:
    return f"after step {step}"
