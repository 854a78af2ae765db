from __future__ import annotations

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.random_augmentation import random_augmentation
from kdoctor_checks.smoke.random_layers import random_layers

ALTERNATIVES = ("dropout-per-replica", "augmented-in-map")
CHECKS = (random_layers, random_augmentation)
CASES: dict[str, tuple[str, ...]] = {random_layers.id: ("dropout",), random_augmentation.id: ALTERNATIVES}


def _judge(check: Check, equal: float | None, *, repeated: float = 3.0, replicas: int = 2) -> Result:
    measures = {"masks": 3.0, "equal_masks": equal, "repeated_masks": repeated}
    cases = [smoke_case(name, replicas, measures=measures) for name in CASES[check.id]]
    return compute_check(check, smoke_run(check.scenario or "", replicas, *cases))


@pytest.mark.parametrize("check", CHECKS)
def test_different_masks_pass(check: Check) -> None:
    assert _judge(check, 0.0).status is Status.PASS


@pytest.mark.parametrize("check", CHECKS)
def test_equal_masks_are_a_warning(check: Check) -> None:
    result = _judge(check, 3.0)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == [f"training {name}" for name in CASES[check.id]]
    assert "3 of 3 steps" in result.findings[0].finding.observed


@pytest.mark.parametrize("check", CHECKS)
def test_masks_that_a_seed_does_not_reproduce_fail(check: Check) -> None:
    result = _judge(check, 0.0, repeated=1.0)
    assert result.status is Status.FAIL
    assert "1 of 3 steps" in result.findings[0].finding.observed


@pytest.mark.parametrize("check", CHECKS)
def test_is_unknown_without_masks(check: Check) -> None:
    assert _judge(check, None).status is Status.UNKNOWN


@pytest.mark.parametrize("check", CHECKS)
def test_is_skipped_on_one_replica(check: Check) -> None:
    assert _judge(check, 3.0, replicas=1).status is Status.SKIP
