from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, SmokeWorker
from kdoctor.model import Action, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.multi_worker import multi_worker

SAVED: dict[str, float | None] = {"variables": 4.0, "equal to worker 0": 4.0, "equal to worker 1": 4.0}


def _worker(number: int, **changes: Any) -> SmokeWorker:
    values: dict[str, Any] = {
        "name": f"worker {number}", "outcome": "trained", "losses": (1.0, 0.5), "weight_deviation": 0.0, **changes
    }  # fmt: skip
    return SmokeWorker(**values)


def _run(*workers: SmokeWorker, **changes: Any) -> SmokeRun:
    case = smoke_case("custom-loop", 2, workers=workers or (_worker(0), _worker(1)), **changes)
    return smoke_run("smoke.multi-worker", 2, case, smoke_case("chief-saves", 2, measures=SAVED))


def test_passes_if_all_workers_agree() -> None:
    result = compute_check(multi_worker, _run())
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("2 workers agree")


def test_worker_with_different_weights_or_losses_fails() -> None:
    weights = compute_check(multi_worker, _run(_worker(0), _worker(1, weight_deviation=0.2)))
    assert "on worker 1, weights differ by up to 0.2" in weights.findings[0].finding.observed
    losses = compute_check(multi_worker, _run(_worker(0), _worker(1, losses=(1.0, 0.6))))
    assert "worker 1" in losses.findings[0].finding.observed


@pytest.mark.parametrize(
    ("changes", "decisive"),
    [
        ({"weight_deviation": 0.3}, "0.3"),
        (
            {
                "outcome": "raised",
                "error_type": "WorkerFailed",
                "error_message": "worker 1: OSError in phase strategy: x",
            },
            "worker 1: OSError in phase strategy: x",
        ),
    ],
)
def test_failed_training_fails(changes: dict[str, Any], decisive: str) -> None:
    result = compute_check(multi_worker, _run(**changes))
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


@pytest.mark.parametrize(
    ("measures", "status"),
    [({**SAVED, "equal to worker 1": 3.0}, Status.FAIL), ({"variables": 4.0}, Status.UNKNOWN)],
)
def test_saved_weights_are_compared_with_every_worker(measures: dict[str, float], status: Status) -> None:
    loop = smoke_case("custom-loop", 2, workers=(_worker(0), _worker(1)))
    run = smoke_run("smoke.multi-worker", 2, loop, smoke_case("chief-saves", 2, measures=measures))
    assert compute_check(multi_worker, run).status is status


def test_single_worker_is_unknown() -> None:
    assert compute_check(multi_worker, _run(_worker(0))).status is Status.UNKNOWN


def test_unresponsive_worker_is_not_blamed_on_versions() -> None:
    message = "worker 0: UnavailableError in phase build: The following tasks are unhealthy:\n/job:worker/task:1"
    run = _run(_worker(0, outcome="raised"), outcome="raised", error_type="WorkerFailed", error_message=message)
    finding = compute_check(multi_worker, run).findings[0].finding
    assert finding.observed.endswith("are unhealthy: /job:worker/task:1")
    assert finding.remedy.action is Action.CONFIGURE
    assert "--keep-artifacts" in finding.remedy.look[0]
