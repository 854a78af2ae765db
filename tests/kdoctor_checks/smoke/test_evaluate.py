from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.evaluate import evaluate

VALUES = {"metric loss (uneven)": 1.25, "reference loss (uneven)": 1.25}
COUNTS = {"examples": 67.0, "predictions": 67.0, "in_order": 67.0}


def _run(**changed: dict[str, Any]) -> SmokeRun:
    usual: dict[str, dict[str, Any]] = {"evaluate": VALUES, "predict": COUNTS, "validation": VALUES}
    cases = (smoke_case(name, 2, measures=changed.get(name, measures)) for name, measures in usual.items())
    return smoke_run("smoke.evaluate", 2, *cases)


@pytest.mark.parametrize("case", ["evaluate", "validation"])
def test_wrong_loss_is_an_error(case: str) -> None:
    result = compute_check(evaluate, _run(**{case: {**VALUES, "metric loss (uneven)": 1.0}}))
    (found,) = [item.finding for item in result.findings]
    assert (result.severity, found.subject) == (Severity.ERROR, f"training {case}")
    assert "loss (uneven) is 1 instead of 1.25" in found.observed


@pytest.mark.parametrize("wrong", [{"predictions": 64.0, "in_order": 64.0}, {"in_order": 2.0}])
def test_missing_or_reordered_predictions_are_an_error(wrong: dict[str, float]) -> None:
    result = compute_check(evaluate, _run(predict={**COUNTS, **wrong}))
    assert [item.finding.subject for item in result.findings] == ["training predict"]


@pytest.mark.parametrize("case", ["evaluate", "predict", "validation"])
def test_is_unknown_without_evidence(case: str) -> None:
    assert compute_check(evaluate, _run()).status is Status.PASS
    assert compute_check(evaluate, _run(**{case: {}})).status is Status.UNKNOWN
