from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.parameter_server_fit import parameter_server_fit


def _run(finite: float = 4.0, **changes: Any) -> SmokeRun:
    measures = {"workers": 2.0, "weights": 4.0, "finite": finite}
    return smoke_run("smoke.parameter-server", 2, smoke_case("fit", 1, measures=measures, **changes))


def test_passes_if_fit_learns() -> None:
    assert compute_check(parameter_server_fit, _run()).status is Status.PASS


def test_unsupported_fit_is_a_warning_with_an_alternative() -> None:
    run = _run(outcome="raised", error_type="ValueError", error_message="To use this dataset", phase="train")
    result = compute_check(parameter_server_fit, run)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    finding = result.findings[0].finding
    for part in ("keras 3.15.1", "ParameterServerStrategy", "ValueError"):
        assert part in finding.observed
    assert "ClusterCoordinator.schedule" in finding.remedy.summary


def test_nan_weights_and_rising_losses_are_a_warning() -> None:
    assert compute_check(parameter_server_fit, _run(3.0)).status is Status.FAIL
    assert compute_check(parameter_server_fit, _run(losses=(0.5, 0.6))).status is Status.FAIL


def test_is_unknown_without_the_case() -> None:
    other = smoke_run("smoke.parameter-server", 2, smoke_case("custom-loop", 1))
    assert compute_check(parameter_server_fit, other).status is Status.UNKNOWN
