from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Action, Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.starved_replica import starved_replica

NAN = Weights(variables=6, mirrored=6, nonfinite=("normalise/gamma", "out/bias"), replicas_agree=True)


def _run(replicas: int = 2, **changes: Any) -> SmokeRun:
    case = smoke_case("starved-tail", replicas, **{"final_batch": 1, "weight_deviation": None, **changes})
    return smoke_run("smoke.uneven-final-batch", replicas, case)


def test_passes_if_the_weights_stay_finite() -> None:
    result = compute_check(starved_replica, _run())
    assert result.status is Status.PASS
    assert "1 over 2 replicas" in result.evidence[0].observed


def test_nan_weights_are_a_warning_despite_a_finite_loss() -> None:
    result = compute_check(starved_replica, _run(weights=NAN, losses=(0.78, None)))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    finding = result.findings[0].finding
    for part in ("1 over 2 replicas", "2 variables (normalise/gamma, out/bias)", "0.78, not finite"):
        assert part in finding.observed
    assert finding.remedy.action is Action.CHANGE_CODE
    for guard in ("drop_remainder=True", "synchronized=True", "steps_per_epoch"):
        assert guard in finding.remedy.summary


@pytest.mark.parametrize("changes", [{"weights": NAN}, {"losses": (None, None)}], ids=["weights", "losses"])
@pytest.mark.parametrize(
    ("keras", "subject"), [("keras 3.15.1", "keras 3.15.1"), (None, "training starved-tail")], ids=["known", "unknown"]
)
def test_keras_is_at_fault_if_it_is_known(changes: dict[str, Any], keras: str | None, subject: str) -> None:
    result = compute_check(starved_replica, replace(_run(**changes), keras=keras))
    assert [item.finding.subject for item in result.findings] == [subject]


def test_nan_losses_and_errors_are_a_warning() -> None:
    assert compute_check(starved_replica, _run(losses=(None, None))).status is Status.FAIL
    result = compute_check(starved_replica, _run(outcome="raised", error_type="InvalidArgumentError"))
    assert result.findings[0].finding.observed.startswith("InvalidArgumentError")
    assert result.findings[0].finding.expected == "finite weights"


@pytest.mark.parametrize(("replicas", "tail", "starves"), [(4, 5, True), (4, 4, False), (4, 7, False), (8, 9, True)])
def test_batch_that_feeds_all_replicas_is_unknown(replicas: int, tail: int, *, starves: bool) -> None:
    """Examples from the version matrix: with 4 replicas, tails of 1, 2, 3, 5, 6 and 9 leave one empty."""
    result = compute_check(starved_replica, _run(replicas, final_batch=tail))
    assert result.status is (Status.PASS if starves else Status.UNKNOWN)


def test_is_unknown_without_evidence() -> None:
    assert compute_check(starved_replica, _run(weights=None)).status is Status.UNKNOWN
    assert compute_check(starved_replica, _run(final_batch=None)).status is Status.UNKNOWN
    other = smoke_run("smoke.uneven-final-batch", 2, smoke_case("guarded", 2))
    assert compute_check(starved_replica, other).status is Status.UNKNOWN


def test_is_skipped_on_one_replica() -> None:
    assert compute_check(starved_replica, _run(1)).status is Status.SKIP
