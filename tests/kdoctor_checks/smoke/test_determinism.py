from __future__ import annotations

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun
from kdoctor.model import Status
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


def test_passes_where_two_trainings_are_one_and_tells_what_it_costs() -> None:
    result = compute_check(determinism, _run())
    assert result.status is Status.PASS
    assert [(item.subject, item.observed) for item in result.evidence] == [
        ("case seed", "weights differ by 0, step 0.01 s"),
        (
            "case op-determinism",
            "weights differ by 0, step 0.01 s, 1.2 times as long as without enable_op_determinism",
        ),
        ("sum by segments", "differs by 2e-06; insisted on, equal, 3.1 times as long"),
        ("depthwise convolution's gradients", "differs by 1e-06; insisted on, TensorFlow refuses it"),
        ("1 operation", "equal when run again, insisted on 1 to 1 times as long: matrix product"),
    ]


def test_warns_by_how_much_they_differ_and_where() -> None:
    assert "up to 3e-07" in compute_check(determinism, _run(3e-7)).findings[0].finding.observed
    assert "not finite" in compute_check(determinism, _run(None)).findings[0].finding.observed
    measures = {
        "difference": 0.5,
        "difference of hidden/kernel": 0.1,
        "difference of out/bias": 0.5,
        "first_step_apart": 4.0,
    }
    assert compute_check(determinism, _run(measures=measures)).findings[0].finding.observed == (
        "weights of two trainings differ: up to 0.5, in out/bias, hidden/kernel; the loss differs from step 4 on"
    )
    assert compute_check(determinism, _run(3e-7), tolerance=1e-5).status is Status.PASS


def test_warns_of_an_operation_that_differs_although_it_was_insisted_on() -> None:
    differs: dict[str, float | None] = {**OPERATIONS, "matrix product: difference insisting": 1e-7}
    result = compute_check(determinism, _run(operations=differs))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.observed == (
        "matrix product: differs by 1e-07 when run again, with enable_op_determinism"
    )


def test_is_unknown_without_a_comparison() -> None:
    assert compute_check(determinism, _run(measures={})).status is Status.UNKNOWN
    assert compute_check(determinism, _run(operations={})).status is Status.UNKNOWN
