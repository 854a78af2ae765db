from __future__ import annotations

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Severity, Status
from kdoctor_checks.smoke.no_such_device import no_such_device


def _run(*processes: SmokeWorker) -> SmokeRun:
    return smoke_run("smoke.misuse", 2, smoke_case("no-such-device", 2, workers=processes))


def test_passes_where_it_is_refused() -> None:
    refused = SmokeWorker(name="process 0", outcome="raised", error_type="InvalidArgumentError")
    result = compute_check(no_such_device, _run(refused))
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "refused with InvalidArgumentError"


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (SmokeWorker(name="process 0", outcome="timed-out", phase="train"), "it says nothing and waits in phase train"),
        (
            SmokeWorker(name="process 0", outcome="timed-out", phase="first step", seconds=19.7),
            "kdoctor ended it after 20 s",
        ),
        (SmokeWorker(name="process 0", outcome="trained"), "it trains on 2 replicas, one of which does not exist"),
        (SmokeWorker(name="process 0", outcome="died", signal="SIGABRT"), "it died of SIGABRT"),
    ],
)
def test_warns_of_everything_else(process: SmokeWorker, words: str) -> None:
    result = compute_check(no_such_device, _run(process))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert words in result.findings[0].finding.observed


def test_is_unknown_where_nobody_watched() -> None:
    assert compute_check(no_such_device, _run()).status is Status.UNKNOWN
