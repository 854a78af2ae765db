from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.layers import layers

CASES = ("normalization", "embedding", "recurrent", "attention", "frozen")
MOVED = {"frozen_moved": 0.0, "unfrozen_moved": 0.2}


def _run(changed: str = "", replicas: int = 2, **changes: Any) -> SmokeRun:
    measures: dict[str, Any] = {"frozen": {"measures": MOVED}}
    cases = (
        smoke_case(name, replicas, **{**measures.get(name, {}), **(changes if name == changed else {})})
        for name in CASES
    )
    return smoke_run("smoke.layers", replicas, *cases)


def _frozen(**measures: float) -> SmokeRun:
    run = _run()
    return smoke_run("smoke.layers", 2, *run.cases[:-1], smoke_case("frozen", 2, measures=measures))


def test_passes_if_all_match_one_device() -> None:
    assert compute_check(layers, _run()).status is Status.PASS
    assert compute_check(layers, _run(replicas=1)).status is Status.SKIP


@pytest.mark.parametrize("case", CASES[:-1])
def test_different_weights_are_an_error(case: str) -> None:
    result = compute_check(layers, _run(case, weight_deviation=0.01))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert [item.finding.subject for item in result.findings] == [f"training {case}"]


@pytest.mark.parametrize(("frozen", "unfrozen"), [(0.1, 0.2), (0.0, 0.0)])
def test_frozen_layer_that_moves_or_stays_is_an_error(frozen: float, unfrozen: float) -> None:
    result = compute_check(layers, _frozen(frozen_moved=frozen, unfrozen_moved=unfrozen))
    assert [item.finding.subject for item in result.findings] == ["training frozen"]


def test_is_unknown_without_measures() -> None:
    partly: list[dict[str, float]] = [{}, {"frozen_moved": 0.0}, {"unfrozen_moved": 0.2}]
    for measures in partly:
        assert compute_check(layers, _frozen(**measures)).status is Status.UNKNOWN
    assert compute_check(layers, _run("attention", weight_deviation=None)).status is Status.UNKNOWN
