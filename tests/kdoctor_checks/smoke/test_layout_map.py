from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import smoke_case, smoke_run
from helpers.judging import compute_check
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor_checks.smoke.layout_map import layout_map

WHOLE = Weights(variables=4, mirrored=4, sharded=0, nonfinite=(), replicas_agree=True)
CUT = Weights(variables=4, mirrored=3, sharded=1, nonfinite=(), replicas_agree=True)
REFUSED: dict[str, Any] = {"outcome": "raised", "error_type": "ValueError", "error_message": "no", "phase": "build"}
MEASURED: dict[str, dict[str, Any]] = {
    "matches-nothing": {"weights": WHOLE},
    "partial-path": {"weights": WHOLE},
    "not-divisible": {**REFUSED, "error_type": "IndivisibleError"},
    "unknown-axis": REFUSED,
    "model-outside": {**REFUSED, "phase": "first step"},
}


def _run(replicas: int = 2, **changes: dict[str, Any]) -> SmokeRun:
    """What Keras 3.15 does, but for these cases."""
    cases = {name: {**case, **changes.get(name.replace("-", "_"), {})} for name, case in MEASURED.items()}
    made = [smoke_case(name, replicas, **case) for name, case in cases.items()]
    return smoke_run("smoke.layout-map", replicas, *made, tensorflow=None, jax="0.10.2")


def test_passes_where_each_mistake_is_refused_or_seen() -> None:
    result = compute_check(layout_map, _run())
    assert result.status is Status.PASS
    assert [item.observed for item in result.evidence] == [
        "trained whole in silence, and seen: 0 of 4 variables are cut up",
        'trained whole in silence, and seen: 0 of 4 variables are cut up: the key "hidden/kernel" needs ".*" before it',
        "refused: IndivisibleError in phase build: no",
        "refused: ValueError in phase build: no",
        "refused: ValueError in the first step: no",
    ]


def test_a_key_that_is_a_part_of_a_path_may_cut() -> None:
    """What Keras 3.13 does."""
    assert compute_check(layout_map, _run(partial_path={"weights": CUT})).status is Status.PASS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"matches_nothing": {"weights": CUT}}, "1 of 4 variables are cut up"),
        ({"partial_path": {"weight_deviation": 0.2}}, "weights differ by up to 0.2 from one device's"),
        ({"not_divisible": {"outcome": "trained", "weights": WHOLE}}, "it trained without an error"),
        ({"unknown_axis": {"outcome": "trained", "weights": CUT}}, "it trained without an error"),
        ({"model_outside": {"outcome": "trained", "weights": CUT, "weight_deviation": 0.3}}, "weights differ"),
        ({"model_outside": {"error_type": "MemoryError"}}, "MemoryError in the first step"),
        ({"matches_nothing": {"outcome": "timed-out", "phase": "trace", "finished": "data"}}, "hung in phase trace"),
    ],
)
def test_fails_where_one_is_neither(changes: dict[str, Any], words: str) -> None:
    result = compute_check(layout_map, _run(**changes))
    assert result.status is Status.FAIL
    assert words in result.findings[0].finding.observed


def test_is_unknown_where_nobody_looked_and_skipped_on_one_device() -> None:
    assert compute_check(layout_map, _run(matches_nothing={"weights": None})).status is Status.UNKNOWN
    assert compute_check(layout_map, _run(replicas=1)).status is Status.SKIP
