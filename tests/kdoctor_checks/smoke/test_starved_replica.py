from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Action, Severity, Status
from kdoctor_checks.smoke.starved_replica import starved_replica

NAN = Weights(variables=6, mirrored=6, nonfinite=("normalise/gamma", "out/bias"), replicas_agree=True)


def _run(replicas: int = 2, **changes: Any) -> SmokeRun:
    case = smoke_case("starved-tail", replicas, **{"final_batch": 1, "weight_deviation": None, **changes})
    return smoke_run("smoke.uneven-final-batch", replicas, case)


def test_passes_if_the_weights_stay_finite() -> None:
    result = compute_check(starved_replica, _run())
    assert result.status is Status.PASS
    assert "final batch of 1 over 2 replicas: the weights stay finite" in result.evidence[0].observed


def test_warns_of_nan_in_the_weights_though_a_loss_was_printed() -> None:
    result = compute_check(starved_replica, _run(weights=NAN, losses=(0.78, None)))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    finding = result.findings[0].finding
    assert finding.observed == (
        "final batch of 1 over 2 replicas: 2 variables hold NaN or infinity (normalise/gamma, out/bias); "
        "losses that fit printed: 0.78, not finite"
    )
    assert finding.remedy.action is Action.CHANGE_CODE
    for guard in ("drop_remainder=True", "synchronized=True", "steps_per_epoch"):
        assert guard in finding.remedy.summary


def test_warns_of_a_loss_alone_and_of_an_error() -> None:
    assert compute_check(starved_replica, _run(losses=(None, None))).status is Status.FAIL
    result = compute_check(starved_replica, _run(outcome="raised", error_type="InvalidArgumentError"))
    assert result.findings[0].finding.observed.startswith("InvalidArgumentError")


@pytest.mark.parametrize(("replicas", "tail", "starves"), [(4, 5, True), (4, 4, False), (4, 7, False), (8, 9, True)])
def test_passes_only_a_batch_that_really_starves_a_replica(replicas: int, tail: int, *, starves: bool) -> None:
    """The examples of the version matrix: over 4 replicas tails of 1, 2, 3, 5, 6 and 9 starve one."""
    result = compute_check(starved_replica, _run(replicas, final_batch=tail))
    assert result.status is (Status.PASS if starves else Status.UNKNOWN)


def test_is_unknown_without_evidence() -> None:
    assert compute_check(starved_replica, _run(weights=None)).status is Status.UNKNOWN
    assert compute_check(starved_replica, _run(final_batch=None)).status is Status.UNKNOWN
    other = smoke_run("smoke.uneven-final-batch", 2, smoke_case("guarded", 2))
    assert compute_check(starved_replica, other).status is Status.UNKNOWN


def test_says_nothing_of_one_replica() -> None:
    assert compute_check(starved_replica, _run(1)).status is Status.SKIP
