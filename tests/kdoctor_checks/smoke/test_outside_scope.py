from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.outside_scope import outside_scope

REFUSED = {"outcome": "raised", "error_type": "RuntimeError", "error_message": "Mixing", "phase": "train"}
NOT_MIRRORED = {"weights": Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)}
MEASURED: dict[str, dict[str, Any]] = {
    "model-sgd": {**REFUSED, "error_type": "AssertionError"},
    "model-adam": REFUSED,
    "optimizer-sgd": {},
    "optimizer-adam": REFUSED,
    "metric-sgd": {},
    "metric-adam": {},
    "compile-sgd": {},
    "compile-adam": REFUSED,
    "loaded-model-sgd": NOT_MIRRORED,
    "loaded-model-adam": NOT_MIRRORED,
}
"""The results of Keras 3.15.1."""


def _run(replicas: int = 2, **changes: dict[str, Any]) -> SmokeRun:
    given = {**MEASURED, **{name.replace("_", "-"): change for name, change in changes.items()}}
    cases = [smoke_case(name, replicas, **change) for name, change in given.items()]
    return smoke_run("smoke.outside-scope", replicas, *cases)


def test_measured_behaviour_of_keras_passes() -> None:
    result = compute_check(outside_scope, _run())
    assert result.status is Status.PASS
    kinds = [item.observed.partition(":")[0] for item in result.evidence]
    assert [kinds.count(kind) for kind in ("refused", "harmless")] == [4, 4]
    assert len(kinds) == 10


@pytest.mark.parametrize(
    ("run", "decisive"),
    [
        (_run(model_sgd={}), "6 of 6 variables"),
        (_run(optimizer_sgd={"weight_deviation": 0.2}), "0.2"),
        (_run(metric_adam={"losses": (2.0, 1.0)}), "2, 1 instead of 1, 0.5"),
        (_run(compile_sgd=NOT_MIRRORED), "0 of 4 trainable variables"),
        (_run(compile_sgd={"outcome": "died", "signal": "SIGSEGV"}), "SIGSEGV"),
        (_run(model_adam={**REFUSED, "phase": "strategy"}), "RuntimeError in phase strategy"),
    ],
)
def test_undetected_mistakes_fail(run: SmokeRun, decisive: str) -> None:
    result = compute_check(outside_scope, run)
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(outside_scope, _run(metric_sgd={"weight_deviation": None})).status is Status.UNKNOWN
    assert compute_check(outside_scope, _run(metric_sgd={"weights": None})).status is Status.UNKNOWN
    assert compute_check(outside_scope, _run(1)).status is Status.SKIP


def test_quoted_error_has_no_addresses_and_nodes() -> None:
    message = (
        "{{function_node __wrapped__Add_/job:localhost}} Mixing: <a.b.Mirrored object at 0x7f46731c8bd0> is not it"
    )
    result = compute_check(outside_scope, _run(model_adam={**REFUSED, "error_message": message}))
    assert any(e.observed.endswith("RuntimeError in phase train: Mixing: Mirrored is not it") for e in result.evidence)


def test_long_error_is_shortened() -> None:
    result = compute_check(outside_scope, _run(model_adam={**REFUSED, "error_message": "x" * 301}))
    assert any(e.observed.endswith("x" * 300 + " ...") for e in result.evidence)
