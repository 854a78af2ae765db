from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.check import Check
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.losses import losses
from kdoctor_checks.smoke.masked_loss import masked_loss
from kdoctor_checks.smoke.scalar_loss import scalar_loss
from kdoctor_checks.smoke.train_step_loss import train_step_loss

RIGHT = ("sample-weight", "class-weight", "regularizers", "outputs", "run-eagerly", "train-step")
OTHERS = ("train-step-of-guide", "scalar-loss", "scalar-loss-repeated", "masked-loss", "token-weights")


def _run(changed: str = "", replicas: int = 2, **changes: Any) -> SmokeRun:
    cases = (smoke_case(name, replicas, **(changes if name == changed else {})) for name in (*RIGHT, *OTHERS))
    return smoke_run("smoke.losses", replicas, *cases)


def test_all_pass_if_they_match_one_device() -> None:
    for check in (losses, masked_loss, scalar_loss, train_step_loss):
        assert compute_check(check, _run()).status is Status.PASS
        assert compute_check(check, _run(replicas=1)).status is Status.SKIP


@pytest.mark.parametrize("case", RIGHT)
def test_a_feature_that_is_right_today_is_an_error_if_it_breaks(case: str) -> None:
    result = compute_check(losses, _run(case, weight_deviation=0.01))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert [item.finding.subject for item in result.findings] == [f"training {case}"]


def test_metric_is_compared() -> None:
    result = compute_check(losses, _run("sample-weight", measures={"metric mae": 1.0, "reference mae": 0.5}))
    assert "mae is 1 instead of 0.5" in result.findings[0].finding.observed


@pytest.mark.parametrize(
    ("check", "case", "changes", "advice"),
    [
        (scalar_loss, "scalar-loss", {"weight_deviation": 0.18}, "tf.ones(tf.shape(y_true)[:1])"),
        (masked_loss, "masked-loss", {"weight_deviation": 0.0034}, "sample_weight"),
        (train_step_loss, "train-step-of-guide", {"losses": (0.5, 0.25)}, 'all_reduce("sum", loss)'),
    ],
)
def test_measured_defect_is_a_warning(check: Check, case: str, changes: dict[str, Any], advice: str) -> None:
    result = compute_check(check, _run(case, **changes))
    (found,) = [item.finding for item in result.findings]
    assert (result.status, result.severity, found.subject) == (Status.FAIL, Severity.WARNING, f"training {case}")
    assert advice in found.remedy.summary
    assert compute_check(losses, _run(case, **changes)).status is Status.PASS


@pytest.mark.parametrize(("check", "case"), [(scalar_loss, "scalar-loss-repeated"), (masked_loss, "token-weights")])
def test_failed_alternative_does_not_advise_itself(check: Check, case: str) -> None:
    (found,) = compute_check(check, _run(case, weight_deviation=0.2)).findings
    assert "tf.ones" not in found.finding.remedy.summary
    assert "sample_weight" not in found.finding.remedy.summary


@pytest.mark.parametrize(("check", "case"), [(losses, "outputs"), (scalar_loss, "scalar-loss")])
def test_is_unknown_without_a_comparison(check: Check, case: str) -> None:
    assert compute_check(check, _run(case, weight_deviation=None)).status is Status.UNKNOWN


def test_keras_that_is_wrong_for_every_loss_is_the_cause() -> None:
    run = replace(_run("scalar-loss", weight_deviation=0.18), keras="keras 3.6.0")
    (found,) = compute_check(scalar_loss, run).findings
    assert "keras>=3.10" in found.finding.remedy.commands[0]
