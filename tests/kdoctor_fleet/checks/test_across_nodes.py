from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from kdoctor.check import Check
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.smoke.across_nodes import across_nodes
from kdoctor_fleet.checks.smoke.across_nodes_jax import across_nodes_jax

MEASURES: dict[str, float | None] = {"workers": 2.0, "worker": 1.0, "wrong values": 0.0, "all_reduce_gbs": 11.0}
BOTH = [(across_nodes, "custom-loop"), (across_nodes_jax, "data-parallel")]


def status(check: Check, case: str, **changes: Any) -> Status:
    ended = replace(smoke_case(case, 2, measures=MEASURES), **changes)
    return compute_check(check, smoke_run(check.id, 1, ended)).status


@pytest.mark.parametrize(("check", "case"), BOTH)
@cases(
    ({}, Status.PASS),
    ({"weight_deviation": 0.3}, Status.FAIL),
    ({"outcome": "timed-out", "phase": "strategy"}, Status.FAIL),
    ({"outcome": "skipped", "skip_reason": "port 23000 cannot be used"}, Status.SKIP),
    ({"measures": {**MEASURES, "workers": 3.0}}, Status.UNKNOWN),
    ({"measures": {}}, Status.UNKNOWN),
    ({"replicas": 1}, Status.UNKNOWN),
)
def test_worker_is_judged(check: Check, case: str, changes: dict[str, Any], expected: Status) -> None:
    assert status(check, case, **changes) is expected


@pytest.mark.parametrize(("wrong", "expected"), [(0.0, Status.PASS), (3.0, Status.FAIL), (None, Status.UNKNOWN)])
def test_all_reduce_must_be_exact(wrong: float | None, expected: Status) -> None:
    assert status(across_nodes, "custom-loop", measures={**MEASURES, "wrong values": wrong}) is expected
