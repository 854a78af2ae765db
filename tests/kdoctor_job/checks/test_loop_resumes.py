"""The check of a training loop that was killed and went on."""

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity
from kdoctor_job.facts import JobLoop

GOOD: dict[str, Any] = {
    "folder": "/data/saves", "steps": 16, "noise": 0.0, "killed_after": 8, "load_after": 6, "half_known": True,
    "half_after": 6,
}  # fmt: skip


def loop(**changes: Any) -> SmokeRun:
    case = smoke_case("own-loop", 2, job=JobLoop(**{**GOOD, **changes}))
    return smoke_run("smoke.own-loop", 2, case)


LOOP, HALF = "training loop", "half-written save"
test_loop_resumes = table(
    "job.loop-resumes",
    Severity.ERROR,
    passes(loop(), "after step 6 with the same numbers", of=[LOOP, HALF]),
    fails(loop(load_after=None), "those of no step", of=[LOOP]),
    fails(loop(load_after=0), "restore_or_initialize", of=[LOOP]),
    fails(loop(load_differs=9), "other numbers from step 9 on", "the position in the data", of=[LOOP]),
    fails(loop(load_problem="OSError: truncated"), "OSError: truncated", of=[LOOP]),
    fails(loop(half_after=0), "begins with its first step", of=[HALF]),
    fails(loop(half_differs=9), "under another name", of=[HALF]),
    fails(loop(half_problem="EOFError"), "EOFError", of=[HALF]),
    # What does not come back from a complete save says nothing about one that is cut off.
    fails(loop(load_differs=9, half_after=0), of=[LOOP]),
    fails(loop(problem="FileNotFoundError: /data/shard-3"), "/data/shard-3", of=[LOOP]),
    fails(loop(save_problem="Read-only file system: /data/saves"), "Make /data/saves writable", of=["saving"]),
    unknown(loop(half_known=False), "no save began"),
    unknown(loop(unsaved=True), "saved nothing in 16 steps"),
    unknown(loop(noise=0.5), "give its random numbers a seed"),
    unknown(loop(steps=0), "yielded nothing"),
    unknown(loop(noise=None), "yielded nothing"),
    unknown(smoke_run("smoke.own-loop", 2, failure="the process that runs the trainings died"), "died"),
)
