from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.metrics import metrics

EQUAL = {"metric auc": 0.75, "reference auc": 0.75, "metric val_auc": 0.75, "reference val_auc": 0.75}


def _run(replicas: int = 2, **changes: Any) -> SmokeRun:
    changed = {"measures": EQUAL, **changes}
    cases = (smoke_case(name, replicas, **changed) for name in ("binary", "classes", "on-batch"))
    return smoke_run("smoke.metrics", replicas, *cases)


def test_equal_values_pass() -> None:
    result = compute_check(metrics, _run())
    assert result.status is Status.PASS
    assert "auc, val_auc" in result.evidence[0].observed


@pytest.mark.parametrize("value", [1.5, None])
def test_summed_or_missing_value_is_an_error(value: float | None) -> None:
    result = compute_check(metrics, _run(measures={**EQUAL, "metric val_auc": value}))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    observed = [item.finding.observed for item in result.findings]
    assert len(observed) == 3
    assert all("val_auc is" in text and "instead of 0.75" in text for text in observed)


def test_losses_of_on_batch_are_compared() -> None:
    assert compute_check(metrics, _run(losses=(2.0, 1.0))).status is Status.FAIL


def test_is_unknown_without_values_and_skipped_on_one_replica() -> None:
    assert compute_check(metrics, _run(measures={})).status is Status.UNKNOWN
    assert compute_check(metrics, _run(replicas=1)).status is Status.SKIP
