from typing import Any

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun, Weights
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.layout_map import layout_map

WHOLE = Weights(variables=4, mirrored=4, sharded=0, nonfinite=(), replicas_agree=True)
SHARDED = Weights(variables=4, mirrored=3, sharded=1, nonfinite=(), replicas_agree=True)
REFUSED: dict[str, Any] = {"outcome": "raised", "error_type": "ValueError", "error_message": "no", "phase": "build"}
TRAINED: dict[str, Any] = {"outcome": "trained", "error_type": None, "error_message": None, "phase": "inspect"}
MEASURED: dict[str, dict[str, Any]] = {
    "matches-nothing": {"weights": WHOLE},
    "partial-path": {"weights": WHOLE},
    "not-divisible": {**REFUSED, "error_type": "IndivisibleError"},
    "unknown-axis": REFUSED,
    "model-outside": {**REFUSED, "phase": "first step"},
}


def _run(replicas: int = 2, **changes: dict[str, Any]) -> SmokeRun:
    """The result of Keras 3.15, with changes."""
    cases = {name: {**case, **changes.get(name.replace("-", "_"), {})} for name, case in MEASURED.items()}
    made = [smoke_case(name, replicas, **case) for name, case in cases.items()]
    return smoke_run("smoke.layout-map", replicas, *made, tensorflow=None, jax="0.10.2")


def test_refused_or_unsharded_mistakes_pass() -> None:
    result = compute_check(layout_map, _run())
    assert result.status is Status.PASS
    decisive = (
        "0 of 4",
        ".*",
        "IndivisibleError in phase build",
        "ValueError in phase build",
        "ValueError in the first",
    )
    assert all(part in item.observed for part, item in zip(decisive, result.evidence, strict=True))


def test_key_that_matches_a_part_of_a_path_may_shard() -> None:
    """The result of Keras 3.13."""
    result = compute_check(layout_map, _run(partial_path={"weights": SHARDED}))
    assert result.status is Status.PASS
    assert result.evidence[1].observed.endswith("1 of 4 variables sharded")


@cases(
    ({"matches_nothing": {"weights": SHARDED}}, "1 of 4"),
    ({"partial_path": {"weight_deviation": 0.2}}, "0.2"),
    ({"not_divisible": {**TRAINED, "weights": WHOLE}}, "0 of 4"),
    ({"unknown_axis": {**TRAINED, "weights": SHARDED}}, "1 of 4"),
    ({"model_outside": {**TRAINED, "weights": SHARDED, "weight_deviation": 0.3}}, "0.3"),
    ({"model_outside": {"error_type": "MemoryError"}}, "MemoryError in the first step"),
    ({"matches_nothing": {"outcome": "timed-out", "phase": "trace", "finished": "data"}}, "phase trace"),
)
def test_mistakes_that_shard_or_train_incorrectly_fail(changes: dict[str, Any], decisive: str) -> None:
    result = compute_check(layout_map, _run(**changes))
    assert result.status is Status.FAIL
    assert decisive in result.findings[0].finding.observed


def test_is_unknown_without_weights_and_skipped_on_one_device() -> None:
    assert compute_check(layout_map, _run(matches_nothing={"weights": None})).status is Status.UNKNOWN
    assert compute_check(layout_map, _run(replicas=1)).status is Status.SKIP
