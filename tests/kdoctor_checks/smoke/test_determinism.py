from __future__ import annotations

from typing import Any

from syrupy.assertion import SnapshotAssertion

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.determinism import determinism

OPERATIONS: dict[str, float | None] = {
    "matrix product: difference": 0.0,
    "matrix product: difference insisting": 0.0,
    "matrix product: cost": 1.0,
    "sum by segments: difference": 2e-6,
    "sum by segments: difference insisting": 0.0,
    "sum by segments: cost": 3.1,
    "depthwise convolution's gradients: difference": 1e-6,
    "depthwise convolution's gradients: refused": 1.0,
}


def _run(difference: float | None = 0.0, operations: dict[str, float | None] | None = None, **changes: Any) -> SmokeRun:
    cases = (
        smoke_case("seed", 2, **{"measures": {"difference": difference}, **changes}),
        smoke_case("op-determinism", 2, measures={"difference": 0.0, "cost": 1.25}),
        smoke_case("operations", 2, measures=OPERATIONS if operations is None else operations),
    )
    return smoke_run("smoke.determinism", 2, *cases)


def test_equal_trainings_pass_with_the_cost_of_determinism(screen: SnapshotAssertion) -> None:
    result = compute_check(determinism, _run())
    assert result.status is Status.PASS
    assert "\n".join(f"{item.subject}: {item.observed}" for item in result.evidence) == screen


def test_different_weights_are_a_warning_with_size_and_location() -> None:
    assert "3e-07" in compute_check(determinism, _run(3e-7)).findings[0].finding.observed
    assert "NaN or infinity" in compute_check(determinism, _run(None)).findings[0].finding.observed
    measures = {
        "difference": 0.5,
        "difference of hidden/kernel": 0.1,
        "difference of out/bias": 0.5,
        "first_step_apart": 4.0,
    }
    observed = compute_check(determinism, _run(measures=measures)).findings[0].finding.observed
    assert "0.5, in out/bias, hidden/kernel" in observed
    assert "step 4" in observed
    assert compute_check(determinism, _run(3e-7), tolerance=1e-5).status is Status.PASS


def test_operation_that_differs_with_determinism_is_a_warning() -> None:
    differs: dict[str, float | None] = {**OPERATIONS, "matrix product: difference insisting": 1e-7}
    result = compute_check(determinism, _run(operations=differs))
    assert result.status is Status.FAIL
    assert "matrix product differs by 1e-07" in result.findings[0].finding.observed


def test_is_unknown_without_a_comparison() -> None:
    assert compute_check(determinism, _run(measures={})).status is Status.UNKNOWN
    assert compute_check(determinism, _run(operations={})).status is Status.UNKNOWN


def test_fix_is_op_determinism_unless_it_was_used() -> None:
    cases = (smoke_case(name, 2, measures={"difference": 0.5}) for name in ("seed", "op-determinism"))
    first, second = compute_check(determinism, smoke_run("smoke.determinism", 2, *cases)).findings
    assert "enable_op_determinism()" in first.finding.remedy.summary
    assert "enable_op_determinism()" not in second.finding.remedy.summary


def test_highest_cost_of_the_reproducible_operations_is_stated() -> None:
    costs = {"sum": 1.1, "product": 1.4, "mean": 1.2}
    measures = {f"{name}: {what}": 0.0 for name in costs for what in ("difference", "difference insisting")}
    measures |= {f"{name}: cost": cost for name, cost in costs.items()}
    evidence = compute_check(determinism, _run(operations={**measures})).evidence[-1]
    assert evidence.subject == "3 operations"
    assert evidence.observed.endswith("at most 1.4 times the time")
