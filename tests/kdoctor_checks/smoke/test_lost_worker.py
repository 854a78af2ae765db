from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
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


def test_passes_if_the_others_end_with_an_error() -> None:
    result = compute_check(lost_worker, _run())
    assert result.status is Status.PASS
    assert "worker 0 ended with UnavailableError after 10 s" in result.evidence[0].observed


def test_waiting_worker_is_a_warning_with_its_location() -> None:
    result = compute_check(lost_worker, _run(WAITS, None, stacks=STACKS))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    for part in ("worker 0", "in phase strategy at eager/context.py:745 wait", "25 s"):
        assert part in result.findings[0].finding.observed


def test_worker_that_continues_alone_is_a_warning() -> None:
    alone = SmokeWorker(name="worker 0", outcome="trained")
    assert "alone" in compute_check(lost_worker, _run(alone)).findings[0].finding.observed


def test_unwatched_workers_are_unknown() -> None:
    assert compute_check(lost_worker, _run(workers=())).status is Status.UNKNOWN
