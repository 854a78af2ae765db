from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor_checks.smoke.outside_scope import outside_scope

REFUSED = {"outcome": "raised", "error_type": "RuntimeError", "error_message": "Mixing", "phase": "train"}
ALONE = {"weights": Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)}
MEASURED: dict[str, dict[str, Any]] = {
    "model-sgd": {**REFUSED, "error_type": "AssertionError"},
    "model-adam": REFUSED,
    "optimizer-sgd": {},
    "optimizer-adam": REFUSED,
    "metric-sgd": {},
    "metric-adam": {},
    "compile-sgd": {},
    "compile-adam": REFUSED,
    "loaded-model-sgd": ALONE,
    "loaded-model-adam": ALONE,
}
"""What Keras 3.15.1 does with each."""


def _run(replicas: int = 2, **changes: dict[str, Any]) -> SmokeRun:
    given = {**MEASURED, **{name.replace("_", "-"): change for name, change in changes.items()}}
    cases = [smoke_case(name, replicas, **change) for name, change in given.items()]
    return smoke_run("smoke.outside-scope", replicas, *cases)


def test_passes_on_what_was_measured() -> None:
    result = compute_check(outside_scope, _run())
    assert result.status is Status.PASS
    words = [item.observed.partition(":")[0] for item in result.evidence]
    assert words.count("refused") == 4
    assert words.count("harmless") == 4
    assert words.count("trained on one device in silence, and seen") == 2


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (_run(model_sgd={}), "it trains, 6 of 6 variables are mirrored"),
        (_run(optimizer_sgd={"weight_deviation": 0.2}), "weights differ by up to 0.2"),
        (_run(metric_adam={"losses": (2.0, 1.0)}), "the losses are far from one device's"),
        (_run(compile_sgd=ALONE), "0 of 4 trainable variables are mirrored"),
        (_run(compile_sgd={"outcome": "died", "signal": "SIGSEGV"}), "died of SIGSEGV"),
        (_run(model_adam={**REFUSED, "phase": "strategy"}), "RuntimeError in phase strategy"),
    ],
)
def test_fails_where_a_mistake_is_neither_refused_nor_harmless_nor_seen(run: SmokeRun, words: str) -> None:
    result = compute_check(outside_scope, run)
    assert result.status is Status.FAIL
    assert words in result.findings[0].finding.observed


def test_is_unknown_without_evidence_and_skipped_on_one_replica() -> None:
    assert compute_check(outside_scope, _run(metric_sgd={"weight_deviation": None})).status is Status.UNKNOWN
    assert compute_check(outside_scope, _run(metric_sgd={"weights": None})).status is Status.UNKNOWN
    assert compute_check(outside_scope, _run(1)).status is Status.SKIP


def test_quotes_an_error_without_addresses_and_nodes() -> None:
    message = (
        "{{function_node __wrapped__Add_/job:localhost}} Mixing: <a.b.Mirrored object at 0x7f46731c8bd0> is not it"
    )
    result = compute_check(outside_scope, _run(model_adam={**REFUSED, "error_message": message}))
    assert "refused: RuntimeError in phase train: Mixing: Mirrored is not it" in [e.observed for e in result.evidence]


def test_cuts_a_long_error_and_says_so() -> None:
    result = compute_check(outside_scope, _run(model_adam={**REFUSED, "error_message": "x" * 301}))
    assert any(e.observed.endswith("x" * 300 + " ...") for e in result.evidence)
