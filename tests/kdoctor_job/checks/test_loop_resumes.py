"""The check of a training loop that was killed and went on."""

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity
from kdoctor_job.restore_facts import JobGoingOn, JobLoop

WELL = JobGoingOn(after=6)


def loop(load: JobGoingOn | None = WELL, half: JobGoingOn | None = WELL, **changes: Any) -> SmokeRun:
    known: dict[str, Any] = {"folder": "/data/saves", "steps": 16, "noise": 0.0, "killed_after": 8}
    job = JobLoop(load=load, half=half, **{**known, **changes})
    return smoke_run("smoke.own-loop", 2, smoke_case("own-loop", 2, job=job))


LOOP, HALF = "training loop", "half-written save"
test_loop_resumes = table(
    "job.loop-resumes",
    Severity.ERROR,
    passes(loop(), "after step 6 with the same numbers", of=[LOOP, HALF]),
    fails(loop(JobGoingOn()), "those of no step", of=[LOOP]),
    fails(loop(JobGoingOn(after=0)), "restore_or_initialize", of=[LOOP]),
    fails(loop(JobGoingOn(after=6, differs=9)), "other numbers from step 9 on", "the position in the data", of=[LOOP]),
    fails(loop(JobGoingOn(problem="OSError: truncated")), "OSError: truncated", of=[LOOP]),
    fails(loop(half=JobGoingOn(after=0)), "begins with its first step", of=[HALF]),
    fails(loop(half=JobGoingOn(after=6, differs=9)), "under another name", of=[HALF]),
    fails(loop(half=JobGoingOn(problem="EOFError"), half_file="*.state"), "in a save of *.state: EOFError", of=[HALF]),
    # What does not come back from a complete save says nothing about one that is cut off.
    fails(loop(JobGoingOn(after=6, differs=9), JobGoingOn(after=0)), of=[LOOP]),
    fails(loop(problem="FileNotFoundError: /data/shard-3"), "/data/shard-3", of=[LOOP]),
    fails(loop(save_problem="Read-only file system: /data/saves"), "Make /data/saves writable", of=["saving"]),
    fails(loop(problem="PermissionError: [Errno 13] Permission denied: '/data/images'"), "run the loop", of=[LOOP]),
    fails(loop(problem="OSError: [Errno 28] No space left on device"), "Make /data/saves writable", of=[LOOP]),
    unknown(loop(half=None), "no save began"),
    unknown(loop(None, None, no_room=True), "free some", unjudged=["space", LOOP, HALF]),
    passes(loop(left_behind=("/data/x y",)), "rm -r '/data/x y'", of=["/data/x y", LOOP, HALF]),
    unknown(loop(unsaved=True), "saved nothing in 16 steps"),
    unknown(loop(noise=0.5, killed_after=None), "give its random numbers a seed"),
    unknown(loop(steps=0), "yielded nothing"),
    unknown(loop(noise=None), "yielded nothing"),
    unknown(smoke_run("smoke.own-loop", 2, failure="the process that runs the trainings died"), "died"),
)
