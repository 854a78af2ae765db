from typing import Any

import pytest

from helpers.cases import cases
from helpers.comparison_checks import ComparisonCheck
from helpers.facts import smoke_case, smoke_run
from helpers.optimizer_states import STATE as MEASURES
from kdoctor.engine.report import Result
from kdoctor.model import Action, Severity, Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.data_parallel_features import data_parallel_features
from kdoctor_backends.scenarios import ON_JAX

SCENARIO = next(scenario for scenario in ON_JAX if scenario.id == data_parallel_features.id)
HEALTHY: dict[str, float | None] = {
    **MEASURES,
    "reference_way": 0.05,
    "longest_way": 0.06,
    "masks": 2.0,
    "equal_masks": 0.0,
    "repeated_masks": 2.0,
    "loss_scale": 32768.0,
    "variables_float32": 6.0,
}


def _judge(name: str, **changes: Any) -> Result:
    cases = (smoke_case(one, 2, **{"measures": HEALTHY, **(changes if one == name else {})}) for one in SCENARIO.cases)
    return compute_check(data_parallel_features, smoke_run(SCENARIO.id, 2, *cases, tensorflow=None, jax="0.10.2"))


class TestDataParallelFeatures(ComparisonCheck):
    check = data_parallel_features
    scenario = SCENARIO.id
    cases = SCENARIO.cases
    measures = HEALTHY


@cases(
    ("clipvalue", {"reference_way": 0.2}),
    ("muon", {"mirrored_state": 8.0}),
    ("ema", {"state_deviation": 0.1}),
    ("metrics", {"metric auc": 0.7, "reference auc": 0.8}),
    ("dropout", {"equal_masks": 1.0}),
    ("random-layers", {"repeated_masks": 1.0}),
    ("float16", {"loss_scale": 0.5}),
)
def test_a_wrong_feature_is_a_warning_with_an_alternative(name: str, measures: dict[str, float]) -> None:
    result = _judge(name, measures={**HEALTHY, **measures})
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == [f"training {name}"]
    remedy = result.findings[0].finding.remedy
    assert (remedy.action, remedy.look) == (Action.CHANGE_CODE, ())


@pytest.mark.parametrize("name", ["regularizers", "steps-per-execution", "float16"])
def test_weights_that_did_not_move_are_unknown(name: str) -> None:
    assert _judge(name, measures={**HEALTHY, "moved": 1e-6}).status is Status.UNKNOWN


@cases(("dropout", "masks"), ("bfloat16", "variables_float32"), ("clipnorm", "longest_way"))
def test_is_unknown_without_its_measure(name: str, missing: str) -> None:
    measures = {key: value for key, value in HEALTHY.items() if key != missing}
    assert _judge(name, measures=measures).status is Status.UNKNOWN


def test_only_random_layers_need_masks() -> None:
    unmasked = {name: value for name, value in HEALTHY.items() if "masks" not in name}
    assert _judge("metrics", measures=unmasked).status is Status.PASS


def test_dropout_states_its_weights_and_its_masks() -> None:
    (dropout,) = [item for item in _judge("metrics").evidence if item.subject == "training dropout"]
    assert "losses 1, 0.5" in dropout.observed
    assert "equal masks on 2 devices in 0 of 2 steps" in dropout.observed
    assert _judge("dropout", weight_deviation=None).status is Status.UNKNOWN


def test_half_precision_may_differ_more() -> None:
    assert _judge("bfloat16", weight_deviation=8e-4).status is Status.PASS
    assert _judge("metrics", weight_deviation=8e-4).status is Status.FAIL


@pytest.mark.parametrize(("loss", "status"), [(0.545, Status.PASS), (0.56, Status.FAIL)])
def test_losses_in_half_precision_may_differ_by_a_tenth(loss: float, status: Status) -> None:
    assert _judge("bfloat16", reference_losses=(1.0, loss)).status is status
