from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.callbacks import callbacks


def _run(replicas: int = 2, **changes: Any) -> SmokeRun:
    measures = {"metric best epoch": 1.0, "reference best epoch": 1.0}
    case = smoke_case("best-epoch", replicas, **{"measures": measures, **changes})
    return smoke_run("smoke.callbacks", replicas, smoke_case("learning-rate", replicas), case)


def test_equal_decisions_pass() -> None:
    assert compute_check(callbacks, _run()).status is Status.PASS
    assert compute_check(callbacks, _run(replicas=1)).status is Status.SKIP


@pytest.mark.parametrize(
    "changes",
    [
        {"measures": {"metric best epoch": 2.0, "reference best epoch": 1.0}},
        {"measures": {"metric saved weights": 0.1, "reference saved weights": 0.0}},
        {"weight_deviation": 0.1},
    ],
)
def test_another_epoch_or_other_weights_are_an_error(changes: dict[str, Any]) -> None:
    result = compute_check(callbacks, _run(**changes))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert [item.finding.subject for item in result.findings] == ["training best-epoch"]


def test_is_unknown_without_a_comparison() -> None:
    assert compute_check(callbacks, _run(weight_deviation=None)).status is Status.UNKNOWN
