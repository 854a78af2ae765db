from __future__ import annotations

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.random_layers import random_layers


def _run(equal: float | None, replicas: int = 2) -> SmokeRun:
    measures = {"dropout": equal, "dropout-per-replica": 0.0}
    cases = (
        smoke_case(name, replicas, measures={"masks": 3.0, "equal_masks": number}) for name, number in measures.items()
    )
    return smoke_run("smoke.features", replicas, *cases)


def test_different_masks_pass() -> None:
    assert compute_check(random_layers, _run(0.0)).status is Status.PASS


def test_equal_masks_are_a_warning() -> None:
    result = compute_check(random_layers, _run(3.0))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == ["training dropout"]
    assert "3 of 3 steps" in result.findings[0].finding.observed


def test_is_unknown_without_masks() -> None:
    assert compute_check(random_layers, _run(None)).status is Status.UNKNOWN


def test_is_skipped_on_one_replica() -> None:
    assert compute_check(random_layers, _run(3.0, replicas=1)).status is Status.SKIP
