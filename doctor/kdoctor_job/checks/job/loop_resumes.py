from collections.abc import Iterator

from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import finding, unknown
from kdoctor_job.checks.job._user_model import job_check, remedy_for
from kdoctor_job.facts import JobLoop
from kdoctor_job.own_loop import SCENARIO

_RANDOM = 0.1
_LOOP = "training loop"
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


@job_check("job.loop-resumes", Severity.ERROR, scenario=SCENARIO.id)
def loop_resumes(loop: JobLoop) -> Iterator[Outcome]:
    """The job's own training loop goes on after a kill as if it had not been killed.

    Why: what a loop does not save, such as the optimizer, the position in the data or the step of a schedule, shows in
    the next losses, and only if someone compares them. With --loop and --restore, kdoctor runs the loop twice without a
    kill, kills it between two steps and in a save, and lets it go on in fresh processes. What it yields must be what it
    yielded without the kill, from some step on. A difference counts if it exceeds ten times the one between the two
    runs without a kill. Of several workers, the first one is killed, and what it yields is compared.
    Remedy: restore model, optimizer, step and data together.
    Source: https://www.tensorflow.org/guide/checkpoint
    """
    problem = loop.save_problem or loop.problem
    if problem:
        subject = "saving" if loop.save_problem else _LOOP
        fix = f"Make {loop.folder} writable." if loop.save_problem else "To reproduce the error, run the loop."
        yield finding(subject, problem, "the loop trains and saves", remedy_for(problem, fix))
    elif loop.noise is None or not loop.steps:
        yield unknown(_LOOP, "it yielded nothing")
    elif loop.noise > _RANDOM:
        reason = "it yields other numbers in each run: give its random numbers a seed"
        yield unknown(_LOOP, reason)
    elif loop.unsaved:
        reason = f"it saved nothing in {counted(loop.steps, 'step')}: use more --steps, or save more often"
        yield unknown(_LOOP, reason)
    else:
        yield from _judge(loop)


def _judge(loop: JobLoop) -> Iterator[Outcome]:
    after = f"after a kill {_after(loop.killed_after)}"
    yield _gone_on(_LOOP, loop.load_problem, loop.load_after, loop.load_differs, after=after, fix=_TO_STATE)
    subject = "half-written save"
    if loop.load_problem or not loop.load_after or loop.load_differs:
        yield unknown(subject, "a complete save does not come back, either")
    elif not loop.half_known:
        yield unknown(subject, "no save began in the second half")
    else:
        after = "after a kill in a save"
        yield _gone_on(subject, loop.half_problem, loop.half_after, loop.half_differs, after=after, fix=_TO_HALF)


def _gone_on(
    subject: str, problem: str | None, step: int | None, differs: int | None, *, after: str, fix: str
) -> Outcome:
    if problem:
        return finding(
            subject, f"{after}: {problem}", "it goes on", remedy_for(problem, fix), brief="does not go on after a kill"
        )
    if step is None:
        return finding(
            subject, f"{after}, its numbers are those of no step", _SAME, fix, brief="goes on differently after a kill"
        )
    if not step:
        return finding(
            subject, f"{after}, it begins with its first step", _SAME, _TO_BEGIN, brief="begins again after a kill"
        )
    if differs is not None:
        observed = f"{after}, it goes on {_after(step)}, and has other numbers from step {differs} on"
        return finding(subject, observed, _SAME, fix, brief="goes on differently after a kill")
    observed = f"{after}, it goes on {_after(step)} with the same numbers"
    brief = "your loop goes on after a kill with the same numbers" if subject == _LOOP else ""
    return Evidence(subject=subject, observed=observed, brief=brief)


def _after(step: int | None) -> str:
    return f"after step {step}"
