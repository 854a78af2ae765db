from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.lost_worker import lost_worker

RAISED = SmokeWorker(name="worker 0", outcome="raised", phase="train", error_type="UnavailableError")
LOST = SmokeWorker(name="worker 1", outcome="died", signal="SIGKILL")
WAITS = SmokeWorker(name="worker 0", outcome="timed-out", phase="strategy")
STACKS = 'worker 0:\nCurrent thread 0x1 (most recent call first):\n  File "/x/eager/context.py", line 745 in wait\n'


def _run(first: SmokeWorker = RAISED, others_s: float | None = 10.0, **changes: Any) -> SmokeRun:
    measures = {"patience_s": 25.0, **({} if others_s is None else {"others_s": others_s})}
    values = {"workers": (first, LOST), "measures": measures, **changes}
    cases = (smoke_case("dies", 2, **values), smoke_case("never-comes", 2, **values))
    return smoke_run("smoke.lost-worker", 2, *cases)


def test_passes_where_the_others_end_with_an_error() -> None:
    result = compute_check(lost_worker, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "worker 0 ended with UnavailableError after 10 s"


def test_warns_of_one_that_waits_and_says_where() -> None:
    result = compute_check(lost_worker, _run(WAITS, None, stacks=STACKS))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.observed == (
        "worker 0 waits in phase strategy at eager/context.py:745 wait and says nothing; kdoctor ended it after 25 s"
    )


def test_warns_of_one_that_goes_on_alone() -> None:
    alone = SmokeWorker(name="worker 0", outcome="trained")
    assert compute_check(lost_worker, _run(alone)).findings[0].finding.observed == "worker 0 trained on alone"


def test_is_unknown_where_nobody_watched() -> None:
    assert compute_check(lost_worker, _run(workers=())).status is Status.UNKNOWN
