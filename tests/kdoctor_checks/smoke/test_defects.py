"""Every known defect of Keras is found by its check, with its remedy, and nothing else is blamed on it."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.checks import ALL, BUILT_IN, of_installed
from helpers.facts import smoke_case, smoke_run
from helpers.optimizer_states import STATE
from kdoctor.defects import Defect, load_defects
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeRun, Weights
from kdoctor.failures.known import load_failures, load_reproductions
from kdoctor.model import Finding, Severity, Status
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._trained import cases_of

Changes = dict[str, Any]

COUNTS = {f"{word} {what}": 6.0 for word in ("due", "done") for what in ("updates", "steps", "epochs")}
HEALTHY: dict[str, Changes] = {
    "weights": {},
    "counted": {**COUNTS, "metric": 0.5, "metric_reference": 0.5},
    "optimizer": STATE,
    "clipping": {"reference_way": 0.05, "longest_way": 0.06},
    "values": {"metric loss": 1.25, "reference loss": 1.25},
    "predictions": {"examples": 16.0, "predictions": 16.0, "in_order": 16.0},
    "masks": {"masks": 3.0, "equal_masks": 0.0, "repeated_masks": 3.0},
    "finite": {},
}
"""The measures of a case that trains as on one device, by what it is compared by."""
WRONG: dict[str, Changes] = {
    "weights": {"weight_deviation": 0.18},
    "counted": {"measures": {**HEALTHY["counted"], "done updates": 12.0}},
    "optimizer": {"measures": {**STATE, "state_deviation": 0.5}},
    "clipping": {"weight_deviation": 0.031},
    "values": {"measures": {"metric loss": 1.0, "reference loss": 1.25}},
    "predictions": {"measures": {"examples": 16.0, "predictions": 32.0, "in_order": 16.0}},
    "masks": {"measures": {**HEALTHY["masks"], "equal_masks": 3.0}},
    "finite": {"weights": Weights(variables=6, mirrored=6, nonfinite=("out/bias",), replicas_agree=True)},
}
OBSERVED = {
    "weights": "weights differ by up to 0.18",
    "counted": "12 updates were counted instead of 6",
    "optimizer": "differ by up to 0.5 of their size",
    "clipping": "weights differ by up to 0.031",
    "values": "loss is 1 instead of 1.25",
    "predictions": "32 predictions for 16 examples, 16 at their place",
    "masks": "equal masks on 2 replicas in 3 of 3 steps",
    "finite": "NaN or infinity in out/bias (first batch of 33 over 2 replicas)",
}
HAS_OWN_REMEDY = {"clipping", "predictions", "masks", "finite"}
"""Comparisons whose findings have the remedy even if the defect is an error."""
DEFECTS = tuple(load_defects().values())
ERRORS = [defect for defect in DEFECTS if defect.raises]
SILENT = [defect for defect in DEFECTS if not defect.raises]


def named(defect: Defect) -> str:
    return defect.check


def spoiled_cases(defect: Defect) -> tuple[str, ...]:
    return tuple(defect.cases) or cases_of(defect.check)


def run_of(defect: Defect, changed: str = "", *, replicas: int = 2, **changes: Any) -> SmokeRun:
    """A healthy run with changes to one case."""
    usual = {"measures": HEALTHY[defect.compare], "final_batch": 33}
    cases = (
        smoke_case(name, replicas, **{**usual, **(changes if name == changed else {})})
        for name in (*spoiled_cases(defect), *defect.alternatives)
    )
    return smoke_run(defect.scenario, replicas, *cases)


def judged(defect: Defect, changed: str = "", **changes: Any) -> Result:
    return compute_check(BUILT_IN[defect.check], run_of(defect, changed, **changes))


def only_finding(result: Result, case: str) -> Finding:
    """The only finding, which is a warning about the case."""
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    (item,) = result.findings
    assert item.finding.subject == f"training {case}"
    return item.finding


def error_of(defect: Defect, **changes: Any) -> Changes:
    """How a case ends with the error of the defect."""
    error = "RuntimeError" if defect.raises == "*" else defect.raises
    ends = {
        "outcome": "raised",
        "error_type": error,
        "error_message": f"\n\x1b[1m{defect.message} no",
        "phase": "train",
    }
    return {**ends, **changes}


@pytest.mark.parametrize("defect", DEFECTS, ids=named)
def test_record_names_what_exists(defect: Defect) -> None:
    failure = load_failures().by_id[defect.failure]
    (scenario,) = (one for one in SCENARIOS if one.id == defect.scenario)
    assert {*defect.cases, *defect.alternatives} <= set(scenario.cases)
    assert defect.check in {one.check for one in failure.defects}
    assert BUILT_IN[defect.check].failure_modes == (defect.failure,)
    assert {*failure.reproduce, *filter(None, [defect.reproduce])} <= load_reproductions().keys()
    assert failure.reproduce
    assert of_installed(defect.explained_by) <= ALL.keys()


@pytest.mark.parametrize("defect", DEFECTS, ids=named)
def test_training_like_one_device_passes(defect: Defect) -> None:
    result = judged(defect)
    assert result.status is Status.PASS
    names = (*spoiled_cases(defect), *defect.alternatives)
    assert [item.subject for item in result.evidence] == [f"training {name}" for name in names]
    assert judged(defect, replicas=1).status is Status.SKIP


@pytest.mark.parametrize("defect", ERRORS, ids=named)
def test_error_of_the_defect_is_a_warning_with_the_remedy(defect: Defect) -> None:
    for case in spoiled_cases(defect):
        found = only_finding(judged(defect, case, **error_of(defect)), case)
        assert (found.remedy.summary, found.remedy.look) == (defect.fix, defect.look)
        assert (found.expected, found.explained_by) == (defect.expected, tuple(defect.explained_by))
        assert found.brief == (defect.brief or f"raises {error_of(defect)['error_type']} in phase train")
        assert str(error_of(defect)["error_type"]) in found.observed


@pytest.mark.parametrize("defect", ERRORS, ids=named)
@cases(
    {"error_type": "MemoryError"},
    {"error_message": "something else"},
    {"outcome": "died", "error_type": None, "signal": "SIGSEGV"},
    {"outcome": "timed-out", "error_type": None, "seconds": 9.0},
    ids=["type", "message", "crash", "hang"],
)
def test_another_end_is_not_blamed_on_it(defect: Defect, end: Changes) -> None:
    is_same = ("error_type" in end and defect.raises == "*") or ("error_message" in end and not defect.message)
    if is_same and "outcome" not in end:
        pytest.skip("this is the error of the defect")
    (case, *_) = spoiled_cases(defect)
    found = only_finding(judged(defect, case, **error_of(defect, **end)), case)
    assert found.remedy.summary != defect.fix
    assert found.expected == "it trains on 2 replicas"


@pytest.mark.parametrize("defect", DEFECTS, ids=named)
def test_wrong_result_is_a_warning(defect: Defect) -> None:
    for case in spoiled_cases(defect):
        found = only_finding(judged(defect, case, **WRONG[defect.compare]), case)
        assert OBSERVED[defect.compare] in found.observed
        is_blamed = not defect.raises or defect.deviates
        assert (found.remedy.summary == defect.fix) == (is_blamed or defect.compare in HAS_OWN_REMEDY)
        if is_blamed:
            assert (found.brief, found.remedy.look) == (defect.brief, defect.look)


@pytest.mark.parametrize("defect", [one for one in DEFECTS if one.alternatives], ids=named)
def test_wrong_alternative_does_not_advise_itself(defect: Defect) -> None:
    for case in defect.alternatives:
        assert only_finding(judged(defect, case, weight_deviation=0.2), case).remedy.summary != defect.fix


@pytest.mark.parametrize("defect", DEFECTS, ids=named)
def test_is_unknown_without_evidence(defect: Defect) -> None:
    (case, *_) = spoiled_cases(defect)
    if HEALTHY[defect.compare]:
        assert judged(defect, case, measures={}).status is Status.UNKNOWN
    if defect.compare not in {"values", "predictions", "masks"}:
        assert judged(defect, case, weights=None).status is Status.UNKNOWN
        assert judged(defect, case, losses=(), reference_losses=()).status is Status.UNKNOWN
    other = smoke_run(defect.scenario, 2, smoke_case("another", 2), failure="the child died")
    assert compute_check(BUILT_IN[defect.check], other).status is Status.UNKNOWN


@pytest.mark.parametrize("check", ["smoke.scalar-loss", "smoke.masked-loss", "smoke.loss-scale-overflow"])
def test_keras_that_is_wrong_for_every_training_is_the_cause(check: str) -> None:
    defect = load_defects()[check]
    run = replace(run_of(defect, defect.cases[0], weight_deviation=0.18), keras="keras 3.6.0")
    (item,) = compute_check(BUILT_IN[check], run).findings
    assert "keras>=3.10" in item.finding.remedy.commands[0]


def test_findings_about_clipping_follow_from_those_of_the_job() -> None:
    for check, others in (("smoke.clipping", ()), ("smoke.clipping-options", ("smoke.clipping",))):
        defect = load_defects()[check]
        found = only_finding(judged(defect, defect.cases[0], weight_deviation=0.03), defect.cases[0])
        assert found.explained_by[-1 - len(others) :] == ("job.clipping", *others)


def test_ignored_clipping_fails() -> None:
    defect = load_defects()["smoke.clipping"]
    found = only_finding(judged(defect, "clipnorm", measures={"reference_way": 0.3, "longest_way": 0.06}), "clipnorm")
    assert (found.observed, found.brief) == (
        "a variable moved by 0.3 on one device, clipped steps allow 0.06",
        "gradients are not clipped",
    )


def test_masks_that_a_seed_does_not_reproduce_fail() -> None:
    defect = load_defects()["smoke.random-layers"]
    measures = {**HEALTHY["masks"], "repeated_masks": 1.0}
    found = only_finding(judged(defect, "dropout", measures=measures), "dropout")
    assert "1 of 3 steps" in found.observed


def test_end_of_a_training_is_stated() -> None:
    observed = {
        check: only_finding(judged(load_defects()[check], case, **error_of(load_defects()[check])), case).observed
        for check, case in {
            "smoke.gradient-accumulation": "accumulation",
            "smoke.ema-overwrite": "ema-overwrite",
            "smoke.ragged-first-batch": "first-batch-uneven",
            "smoke.ragged-evaluation": "first-batch-uneven",
            "smoke.steps-per-execution": "steps-per-execution",
        }.items()
    }
    assert observed == {
        "smoke.gradient-accumulation": "keras 3.15.1 cannot accumulate gradients over replicas: "
        "RuntimeError in phase train: no",
        "smoke.ema-overwrite": "RuntimeError about merge_call in phase train (keras 3.15.1)",
        "smoke.ragged-first-batch": "RuntimeError in phase train: no (first batch of 33 over 2 replicas)",
        "smoke.ragged-evaluation": "InvalidArgumentError in phase train: no (keras 3.15.1)",
        "smoke.steps-per-execution": "InvalidArgumentError in phase train (keras 3.15.1)",
    }


@pytest.mark.parametrize("losses", [(None, None), (1.0, None)])
def test_loss_that_is_not_finite_fails(losses: tuple[float | None, ...]) -> None:
    defect = load_defects()["smoke.ragged-first-batch"]
    found = only_finding(judged(defect, "first-batch-uneven", losses=losses), "first-batch-uneven")
    assert found.expected == "finite weights on every replica"


def test_reordered_predictions_fail() -> None:
    defect = load_defects()["smoke.predict-on-batch"]
    measures = {**HEALTHY["predictions"], "in_order": 2.0}
    assert judged(defect, "predict-on-batch", measures=measures).status is Status.FAIL


def test_case_that_this_keras_lacks_skips_the_check() -> None:
    defect = load_defects()["smoke.gradient-accumulation"]
    assert judged(defect, "accumulation", outcome="skipped", skip_reason="no such option").status is Status.SKIP
