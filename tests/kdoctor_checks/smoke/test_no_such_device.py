from __future__ import annotations

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.no_such_device import no_such_device


def _run(*processes: SmokeWorker) -> SmokeRun:
    return smoke_run("smoke.misuse", 2, smoke_case("no-such-device", 2, workers=processes))


def test_passes_if_it_is_refused() -> None:
    refused = SmokeWorker(name="process 0", outcome="raised", error_type="InvalidArgumentError")
    result = compute_check(no_such_device, _run(refused))
    assert result.status is Status.PASS
    assert "InvalidArgumentError" in result.evidence[0].observed


@pytest.mark.parametrize(
    ("process", "decisive"),
    [
        (SmokeWorker(name="process 0", outcome="timed-out", phase="train"), "in phase train"),
        (
            SmokeWorker(name="process 0", outcome="timed-out", phase="first step", seconds=19.7),
            "after 20 s",
        ),
        (SmokeWorker(name="process 0", outcome="trained"), "2 replicas"),
        (SmokeWorker(name="process 0", outcome="died", signal="SIGABRT"), "SIGABRT"),
    ],
)
def test_everything_else_is_a_warning(process: SmokeWorker, decisive: str) -> None:
    result = compute_check(no_such_device, _run(process))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert decisive in result.findings[0].finding.observed


def test_unwatched_process_is_unknown() -> None:
    assert compute_check(no_such_device, _run()).status is Status.UNKNOWN
