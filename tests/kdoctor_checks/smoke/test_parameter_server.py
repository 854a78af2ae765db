from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.parameter_server import parameter_server


def _run(finite: float | None = 4.0, **changes: Any) -> SmokeRun:
    measures = {"workers": 2.0, "weights": 4.0, "finite": finite}
    return smoke_run("smoke.parameter-server", 2, smoke_case("custom-loop", 1, measures=measures, **changes))


def test_passes_if_the_loss_falls_and_the_weights_are_finite() -> None:
    result = compute_check(parameter_server, _run())
    assert result.status is Status.PASS
    assert all(part in result.evidence[0].observed for part in ("2 workers", "1, 0.5"))


@pytest.mark.parametrize(
    ("run", "decisive"),
    [
        (_run(3.0), "3 of 4"),
        (_run(losses=(0.5, 0.5)), "0.5, 0.5"),
        (_run(losses=(0.5, None)), "0.5, not finite"),
        (_run(outcome="timed-out", phase="strategy"), "phase strategy"),
    ],
)
def test_training_that_does_not_learn_fails(run: SmokeRun, decisive: str) -> None:
    result = compute_check(parameter_server, run)
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


def test_is_unknown_without_its_weights_or_losses() -> None:
    assert compute_check(parameter_server, _run(None)).status is Status.UNKNOWN
    assert compute_check(parameter_server, _run(losses=(1.0,))).status is Status.UNKNOWN
