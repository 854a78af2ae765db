from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.optimizer_built_late import optimizer_built_late

LATE, IN_SCOPE = "optimizer-built-late", "optimizer-built-in-scope"
RAISED = {"outcome": "raised", "error_type": "InvalidArgumentError", "phase": "first step"}


def _run(changed: str = LATE, **changes: Any) -> SmokeRun:
    cases = (smoke_case(name, 2, **(changes if name == changed else {})) for name in (LATE, IN_SCOPE))
    return smoke_run("smoke.features", 2, *cases)


def test_passes_if_both_match_one_device() -> None:
    assert compute_check(optimizer_built_late, _run()).status is Status.PASS


def test_error_of_keras_3_is_a_warning() -> None:
    result = compute_check(optimizer_built_late, _run(**RAISED))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert "optimizer.build(" in result.findings[0].finding.remedy.summary


@pytest.mark.parametrize("case", [LATE, IN_SCOPE])
def test_other_problems_fail(case: str) -> None:
    assert compute_check(optimizer_built_late, _run(case, weight_deviation=0.1)).status is Status.FAIL
    (item,) = compute_check(optimizer_built_late, _run(IN_SCOPE, **RAISED)).findings
    assert "optimizer.build(" not in item.finding.remedy.summary
