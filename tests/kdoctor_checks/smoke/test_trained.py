"""The checks that compare each case of a training with one device: a row for each, and what holds for all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from helpers.checks import BUILT_IN
from helpers.facts import smoke_case, smoke_run
from helpers.optimizer_states import STATE
from kdoctor.engine.report import Result
from kdoctor.facts import Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._judging import training
from kdoctor_checks.smoke._trained import cases_of

Changes = dict[str, Any]
Wrong = tuple[str, Changes, str]
"""A case, what is different in it, and a part of the finding."""

NAN = Weights(variables=6, mirrored=6, nonfinite=("hidden/kernel",), replicas_agree=True)
APART = Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=False)
WHOLE = Weights(variables=6, mirrored=0, nonfinite=(), replicas_agree=None)
ENDS: tuple[tuple[Changes, str], ...] = (
    ({"outcome": "raised", "error_type": "ValueError", "error_message": "no"}, "ValueError in phase inspect: no"),
    ({"outcome": "timed-out", "phase": "step 4", "finished": "step 3", "steps": 3}, "step 4 (last finished: step 3)"),
    ({"outcome": "died", "signal": "SIGSEGV"}, "SIGSEGV"),
)
DIFFERENT: tuple[tuple[Changes, str], ...] = (
    ({"weight_deviation": 0.18}, "0.18"),
    ({"losses": (1.0, 0.7)}, "1, 0.7 instead of 1, 0.5"),
    ({"weights": NAN, "weight_deviation": None}, "hidden/kernel"),
    ({"weights": APART}, "different weights"),
)
"""How a training differs from one device."""
UNCOMPARED: tuple[Changes, ...] = ({"weights": None}, {"weight_deviation": None}, {"reference_losses": ()})

COUNTS = {f"{word} {what}": 12.0 for word in ("due", "done") for what in ("updates", "steps", "epochs")}
COUNTED = {**COUNTS, "metric": 0.5, "metric_reference": 0.5}
CLOSED = {"one_device": 1e-8, "steps": 12.0, "iterations": 12.0}
EPOCH = {"metric best epoch": 1.0, "reference best epoch": 1.0}
AUC = {"metric auc": 0.75, "reference auc": 0.75, "metric val_auc": 0.75, "reference val_auc": 0.75}
MOVED = {"frozen_moved": 0.0, "unfrozen_moved": 0.2}
SCALED = {"initial_scale": 32768.0, "loss_scale": 32768.0, "variables_float32": 6.0}
VALUES = {"metric loss (uneven)": 1.25, "reference loss (uneven)": 1.25}
PREDICTED = {"examples": 67.0, "predictions": 67.0, "in_order": 67.0}
OPTIMIZER: dict[str, Any] = {
    "measures": STATE,
    "wrong": (
        ({"measures": {**STATE, "mirrored_state": 8.0}}, "only 8 of 10 optimizer variables"),
        ({"measures": {**STATE, "state_deviation": 0.5}}, "0.5"),
        ({"measures": {**STATE, "state_deviation": None}}, "not finite"),
    ),
    "unknown": ({"measures": {}}, {"measures": {**STATE, "moved": 1e-6}}),
    "severity": Severity.WARNING,
}


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a check says about its cases."""

    compared: tuple[str, ...] | None = None
    """The cases whose weights and losses must be those of one device; all if None."""
    measures: Mapping[str, Any] = field(default_factory=dict)
    """Measures of a healthy case."""
    usual: Mapping[str, Changes] = field(default_factory=dict)
    """Other facts of a healthy case, by its name."""
    wrong: tuple[tuple[Changes, str], ...] = ()
    """Further ways in which its first case is wrong."""
    others: tuple[Wrong, ...] = ()
    """Ways in which another case is wrong."""
    unknown: tuple[Changes, ...] = ()
    """Further ways in which its first case is not known."""
    severity: Severity = Severity.ERROR
    mirrored: bool = True
    one_replica: bool = False
    """Whether it also judges a training on one replica."""


CHECKS = {
    "smoke.one-device": Trained(one_replica=True),
    "smoke.custom-loop": Trained(),
    "smoke.cross-device": Trained(),
    "smoke.hierarchical-copy": Trained(severity=Severity.WARNING),
    "smoke.optimizers": Trained(**OPTIMIZER),
    "smoke.optimizer-options": Trained(**OPTIMIZER),
    "smoke.custom-loop-optimizers": Trained(**OPTIMIZER),
    "smoke.losses": Trained(
        wrong=(({"measures": {"metric mae": 1.0, "reference mae": 0.5}}, "mae is 1 instead of 0.5"),)
    ),
    "smoke.callbacks": Trained(
        measures=EPOCH,
        wrong=(
            ({"measures": {**EPOCH, "metric best epoch": 2.0}}, "best epoch is 2 instead of 1"),
            ({"measures": {"metric saved weights": 0.1, "reference saved weights": 0.0}}, "saved weights is 0.1"),
        ),
    ),
    "smoke.closed-form": Trained(
        measures=CLOSED,
        wrong=(
            ({"measures": {**CLOSED, "iterations": 11.0}}, "11 updates after 12 steps"),
            ({"measures": {**CLOSED, "one_device": 0.05}}, "0.05"),
        ),
        unknown=tuple({"measures": {**CLOSED, name: None}} for name in CLOSED),
        one_replica=True,
    ),
    "smoke.state": Trained(
        measures=COUNTED,
        wrong=(
            ({"measures": {**COUNTED, "done updates": 11.0}}, "11 updates were counted instead of 12"),
            ({"measures": {**COUNTED, "done steps": 24.0}}, "24 steps"),
            ({"measures": {**COUNTED, "metric": 0.7}}, "0.7 instead of 0.5"),
        ),
        unknown=tuple({"measures": {**COUNTED, name: None}} for name in ("done updates", "due epochs", "metric")),
    ),
    "smoke.metrics": Trained(
        compared=("on-batch",),
        measures=AUC,
        wrong=(
            ({"measures": {**AUC, "metric val_auc": 1.5}}, "val_auc is 1.5 instead of 0.75"),
            ({"measures": {**AUC, "metric val_auc": None}}, "val_auc is not finite instead of 0.75"),
        ),
        unknown=({"measures": {}},),
    ),
    "smoke.evaluate": Trained(
        compared=(),
        measures=VALUES,
        usual={"predict": {"measures": PREDICTED}},
        wrong=(({"measures": {**VALUES, "metric loss (uneven)": 1.0}}, "loss (uneven) is 1 instead of 1.25"),),
        others=(
            ("validation", {"measures": {**VALUES, "metric loss (uneven)": 1.0}}, "loss (uneven) is 1"),
            (
                "predict",
                {"measures": {**PREDICTED, "predictions": 64.0, "in_order": 64.0}},
                "64 predictions for 67 examples, 64 at their place",
            ),
            ("predict", {"measures": {**PREDICTED, "in_order": 2.0}}, "2 at their place"),
        ),
        unknown=({"measures": {}},),
    ),
    "smoke.layers": Trained(
        usual={"frozen": {"measures": MOVED}},
        others=(
            ("frozen", {"measures": {**MOVED, "frozen_moved": 0.1}}, "a frozen layer moved by 0.1"),
            ("frozen", {"measures": {**MOVED, "unfrozen_moved": 0.0}}, "an unfrozen layer did not move"),
        ),
    ),
    "smoke.mixed-precision": Trained(
        measures=SCALED,
        usual={"float16": {"weight_deviation": 5e-5}, "bfloat16": {"weight_deviation": 8e-4}},
        wrong=(
            ({"measures": {**SCALED, "loss_scale": 0.25}}, "loss scale fell to 0.25"),
            ({"measures": {**SCALED, "loss_scale": None}}, "the optimizer has no loss scale"),
            ({"measures": {**SCALED, "variables_float32": 2.0}}, "2 of 6 variables are float32"),
            ({"weight_deviation": 0.05}, "0.05"),
            ({"reference_losses": (1.0, 0.56)}, "instead of 1, 0.56"),  # 0.545 is within a tenth
        ),
        unknown=({"measures": {}},),
    ),
    "smoke.batch-normalization": Trained(
        compared=("synchronized",),
        usual={"plain": {"weight_deviation": 0.042, "losses": (1.2, 0.4)}},
        wrong=(
            ({"weights": NAN, "weight_deviation": None}, "hidden/kernel"),
            ({"losses": (1.0, None)}, "a loss is not finite"),
        ),
        unknown=({"weights": None}, {"weight_deviation": None}),
    ),
    "smoke.central-storage": Trained(
        compared=("custom-loop",),
        wrong=(
            (
                {"losses": (1.1, 0.6)},  # of Keras 3.15.1, whose weights are correct
                "trains incorrectly under CentralStorageStrategy: losses are 1.1, 0.6 instead of 1, 0.5",
            ),
            (ENDS[0][0], "keras 3.15.1 cannot fit under CentralStorageStrategy: ValueError in phase inspect: no"),
        ),
        severity=Severity.WARNING,
        mirrored=False,
    ),
    "smoke.tpu": Trained(
        usual={"custom-loop": {"weight_deviation": 0.01}},
        wrong=(({"weight_deviation": 0.03}, "0.03"),),
        severity=Severity.WARNING,
        mirrored=False,
        one_replica=True,
    ),
}
EACH = pytest.mark.parametrize("name", CHECKS)


def judged(name: str, changed: str = "", *, replicas: int = 2, **changes: Any) -> Result:
    """The result of a check for a healthy run with changes to one case."""
    check, row = BUILT_IN[name], CHECKS[name]
    usual = {"measures": row.measures, **({} if row.mirrored else {"weights": WHOLE})}
    cases = (
        smoke_case(one, replicas, **{**usual, **row.usual.get(one, {}), **(changes if one == changed else {})})
        for one in cases_of(name)
    )
    return compute_check(check, smoke_run(check.scenario or "", replicas, *cases))


def compared(name: str) -> tuple[str, ...]:
    row = CHECKS[name]
    return cases_of(name) if row.compared is None else row.compared


@EACH
def test_training_like_one_device_passes(name: str) -> None:
    result = judged(name)
    assert (result.status, result.severity) == (Status.PASS, CHECKS[name].severity)
    assert [item.subject for item in result.evidence] == [training(case) for case in cases_of(name)]
    assert judged(name, replicas=1).status is (Status.PASS if CHECKS[name].one_replica else Status.SKIP)


WRONG: list[tuple[str, str, Changes, str]] = [
    *((name, case, *wrong) for name in CHECKS for case in compared(name) for wrong in DIFFERENT),
    *(
        (name, case, {"weights": WHOLE}, "0 of 6")
        for name in CHECKS
        for case in compared(name)
        if CHECKS[name].mirrored
    ),
    *((name, cases_of(name)[-1], *end) for name in CHECKS for end in ENDS),
    *((name, cases_of(name)[0], *wrong) for name, row in CHECKS.items() for wrong in row.wrong),
    *((name, *wrong) for name, row in CHECKS.items() for wrong in row.others),
]


@pytest.mark.parametrize(("name", "case", "changes", "stated"), WRONG)
def test_wrong_case_fails_and_no_other(name: str, case: str, changes: Changes, stated: str) -> None:
    result = judged(name, case, **changes)
    assert result.status is Status.FAIL
    assert [item.finding.subject for item in result.findings] == [training(case)]
    assert stated in result.findings[0].finding.observed


UNKNOWN: list[tuple[str, str, Changes]] = [
    *((name, case, change) for name in CHECKS for case in compared(name)[-1:] for change in UNCOMPARED),
    *((name, cases_of(name)[0], change) for name, row in CHECKS.items() for change in row.unknown),
    *(("smoke.layers", "frozen", {"measures": some}) for some in ({}, {"frozen_moved": 0.0}, {"unfrozen_moved": 0.2})),
    ("smoke.evaluate", "predict", {"measures": {}}),
]


@pytest.mark.parametrize(("name", "case", "changes"), UNKNOWN)
def test_case_that_was_not_compared_is_unknown(name: str, case: str, changes: Changes) -> None:
    result = judged(name, case, **changes)
    assert result.status is Status.UNKNOWN
    assert training(case) in {item.subject for item in result.unjudged}


@EACH
def test_missing_case_is_unknown_and_skipped_ones_skip(name: str) -> None:
    scenario = BUILT_IN[name].scenario or ""
    other = smoke_run(scenario, 2, smoke_case("another", 2), failure="the child died")
    assert compute_check(BUILT_IN[name], other).status is Status.UNKNOWN
    skipped = (smoke_case(case, 2, outcome="skipped", skip_reason="not here") for case in cases_of(name))
    result = compute_check(BUILT_IN[name], smoke_run(scenario, 2, *skipped))
    assert (result.status, "not here" in (result.reason or "")) == (Status.SKIP, True)


@pytest.mark.parametrize(("replicas", "is_odd"), [(3, True), (2, False)])
def test_odd_number_of_devices_has_its_fix(replicas: int, *, is_odd: bool) -> None:
    result = judged("smoke.hierarchical-copy", "hierarchical-copy", replicas=replicas, weight_deviation=0.11)
    finding = result.findings[0].finding
    assert ("odd number of devices" in finding.observed) == is_odd
    assert ("ReductionToOneDevice" in finding.remedy.summary) == is_odd


def test_values_and_differences_are_stated() -> None:
    stated = {
        "smoke.metrics": "auc, val_auc match NumPy",
        "smoke.batch-normalization": "weights within 0.042 of one device",
        "smoke.mixed-precision": "loss scale 32768; ",
        "smoke.evaluate": "loss (uneven) match NumPy",
    }
    for name, text in stated.items():
        assert text in judged(name).evidence[0].observed
    assert judged("smoke.mixed-precision", "float16", reference_losses=(1.0, 0.545)).status is Status.PASS
