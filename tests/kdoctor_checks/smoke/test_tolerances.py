"""Results at the tolerance pass, and results just beyond it fail, in the checks that compare numbers themselves."""

from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import gpus, pairs_run, smoke_case, smoke_run
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeCase
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.data_parallel_batches import data_parallel_batches
from kdoctor_backends.checks.smoke.layout_map import layout_map
from kdoctor_checks.smoke.closed_form import closed_form
from kdoctor_checks.smoke.determinism import determinism
from kdoctor_checks.smoke.multi_worker_fit import multi_worker_fit
from kdoctor_checks.smoke.outside_scope import outside_scope
from kdoctor_checks.smoke.pairs import pairs

HALF = 0.5
"""A tolerance of which sums and products are exact."""


def judged(check: Any, case: SmokeCase, **parameters: Any) -> Result:
    """The result for one case. The others have no result, so that a correct one leaves the check unknown."""
    return compute_check(check, smoke_run(check.scenario, 2, case), **parameters)


def differing(check: Any, name: str, **changes: Any) -> Result:
    return judged(check, smoke_case(name, 2, **changes), tolerance=HALF)


@pytest.mark.parametrize(("difference", "fails"), [(0.0, False), (HALF, False), (0.51, True), (None, True)])
@pytest.mark.parametrize(
    ("check", "name", "measure"),
    [
        (data_parallel_batches, "evaluate", "difference"),
        (determinism, "seed", "difference"),
        (determinism, "op-determinism", "difference"),
        (closed_form, "mirrored", "one_device"),
        (layout_map, "partial-path", None),
        (multi_worker_fit, "fit", None),
        (outside_scope, "metric-sgd", None),
        (outside_scope, "loaded-model-adam", None),
    ],
)
def test_difference_may_be_as_large_as_the_tolerance(
    check: Any, name: str, measure: str | None, difference: float | None, *, fails: bool
) -> None:
    counts = {"steps": 12.0, "iterations": 12.0}
    change: dict[str, Any] = (
        {"measures": {**counts, measure: difference}} if measure else {"weight_deviation": difference}
    )
    result = differing(check, name, **change)
    assert len(result.evidence) == (0 if fails else 1)
    assert difference is None or len(result.findings) == int(fails)  # what is not finite was perhaps not read


@cases(
    (HALF, HALF, ["1 operation"], False),
    (0.51, HALF, ["sum"], False),
    (None, HALF, ["sum"], False),
    (HALF, 0.51, [], True),
    (HALF, None, [], True),
)
def test_operation_may_differ_by_the_tolerance(
    plain: float | None, insisting: float | None, subjects: list[str], *, fails: bool
) -> None:
    result = differing(
        determinism, "operations", measures={"sum: difference": plain, "sum: difference insisting": insisting}
    )
    assert [item.subject for item in result.evidence] == subjects
    assert bool(result.findings) is fails


@cases(
    ({"weight_deviation": HALF}, Status.PASS),
    ({"weight_deviation": 0.51}, Status.FAIL),
    ({"bytes_per_s": 150e9}, Status.PASS),
    ({"bytes_per_s": 149e9}, Status.FAIL),
    ({"wrong_values": 1}, Status.FAIL),
)
def test_pair_may_differ_by_the_tolerance_and_be_half_as_fast(change: dict[str, Any], status: Status) -> None:
    result = compute_check(pairs, pairs_run(4, {(0, 1): change}), gpus(4), tolerance=HALF, slowest_share=HALF)
    assert result.status is status
