from typing import Any

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from helpers.optimizer_states import STATE as MEASURES
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeWorker
from kdoctor.model import Severity, Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.multi_worker_features import multi_worker_features

SCENARIO = next(scenario for scenario in SCENARIOS if scenario.id == multi_worker_features.id)
HEALTHY: dict[str, float | None] = {
    **MEASURES,
    "reference_way": 0.03,
    "longest_way": 0.06,
    "masks": 3.0,
    "equal_masks": 0.0,
    "repeated_masks": 3.0,
    "metric mae": 0.75,
    "reference mae": 0.75,
    "metric top_2": 0.75,
    "reference top_2": 0.75,
    "metric f1": 0.5,
    "reference f1": 0.5,
}


def _workers(deviation: float = 0.0) -> tuple[SmokeWorker, ...]:
    return tuple(
        SmokeWorker(name=f"worker {number}", outcome="trained", losses=(1.0, 0.5), weight_deviation=number * deviation)
        for number in range(2)
    )


def _judge(name: str = "", **changes: Any) -> Result:
    healthy = {"measures": HEALTHY, "workers": _workers()}
    cases = (smoke_case(one, 2, **{**healthy, **(changes if one == name else {})}) for one in SCENARIO.cases)
    return compute_check(multi_worker_features, smoke_run(SCENARIO.id, 2, *cases))


def test_passes_if_everything_matches_one_device() -> None:
    result = _judge()
    assert result.status is Status.PASS
    assert [item.subject for item in result.evidence] == [f"training {name}" for name in SCENARIO.cases]


@cases(
    ("global-clipnorm", {"weight_deviation": 0.022}, "0.022"),
    ("clip-after-reduction", {"measures": {**HEALTHY, "reference_way": 0.3}}, "0.3"),
    ("adam-built-in-scope", {"measures": {**HEALTHY, "metric mae": 1.5}}, "1.5 instead of 0.75"),
    ("adam-built-in-scope", {"workers": _workers(0.4)}, "on worker 1, weights differ by up to 0.4"),
    ("adam-built-late", {"measures": {**HEALTHY, "state_deviation": 0.5}}, "0.5"),
    ("nesterov", {"weight_deviation": 0.05}, "0.05"),
    ("amsgrad", {"measures": {**HEALTHY, "mirrored_state": 0.0}}, "0 of"),
    ("centered-rmsprop", {"measures": {**HEALTHY, "state_deviation": 0.5}}, "0.5"),
    ("metrics-of-classes", {"measures": {**HEALTHY, "metric f1": 1.0}}, "f1 is 1 instead of 0.5"),
    ("metrics-of-classes", {"workers": _workers(0.4)}, "on worker 1, weights differ by up to 0.4"),
    ("adam-built-late", {"outcome": "raised", "error_message": "worker 0: feed a placeholder"}, "worker 0"),
    ("dropout", {"measures": {**HEALTHY, "equal_masks": 3.0}}, "3 of 3 steps"),
    ("dropout-per-replica", {"measures": {**HEALTHY, "repeated_masks": 1.0}}, "1 of 3 steps"),
)
def test_a_wrong_feature_is_a_warning(name: str, changes: dict[str, Any], decisive: str) -> None:
    result = _judge(name, **changes)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == [f"training {name}"]
    assert decisive in result.findings[0].finding.observed


@cases(("global-clipnorm", "clipping"), ("adam-built-late", "optimizer-built-late"))
def test_a_finding_names_the_reproduction(name: str, script: str) -> None:
    finding = _judge(name, weight_deviation=0.022).findings[0].finding
    assert finding.remedy.look == (f"kdoctor explain --reproduce {script}",)


@cases(
    ("adam-built-late", {"measures": {}}),
    ("nesterov", {"measures": {}}),
    ("adam-built-in-scope", {"measures": MEASURES}),
    ("metrics-of-classes", {"measures": {"metric f1": 0.5, "reference f1": 0.5}}),
    ("global-clipnorm", {"measures": {}}),
    ("dropout", {"measures": {}}),
    ("clip-after-reduction", {"workers": _workers()[:1]}),
)
def test_is_unknown_without_evidence(name: str, changes: dict[str, Any]) -> None:
    assert _judge(name, **changes).status is Status.UNKNOWN
