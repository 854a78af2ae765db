"""The limits of what the checks of trainings share, at the limit and just beyond it."""

from collections.abc import Callable
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import packages, smoke_case, smoke_run, target
from helpers.saying import said
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeCase, SmokeWorker
from kdoctor.model import Evidence, Finding, Outcome, Status, Unjudged
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.torch_fit import torch_fit
from kdoctor_checks.smoke._clipping import judge_clipping
from kdoctor_checks.smoke._judging import Comparison, evidence
from kdoctor_checks.smoke._optimizers import has_moved, judge_optimizer
from kdoctor_checks.smoke._precision import judge_precision
from kdoctor_checks.smoke._random_layers import judge_masks
from kdoctor_checks.smoke._values import count_predictions, judge_reported
from kdoctor_checks.smoke._workers import judge_workers
from kdoctor_checks.smoke.evaluate import evaluate

HALF = 0.5
"""A tolerance of which sums and products are exact."""


def compare(tolerance: float = HALF) -> Comparison:
    run = smoke_run("smoke.test", 2)
    return Comparison(run=run, target=target(), packages=packages(), tolerance=tolerance)


def said_of(outcome: Outcome) -> str:
    return outcome.reason if isinstance(outcome, Unjudged) else getattr(outcome, "observed", "")


def workers(*deviations: float | None, losses: tuple[float, ...] = (1.0, 0.5), replicas: int = 2) -> Outcome:
    found = tuple(
        SmokeWorker(name=f"worker {place}", outcome="trained", losses=losses, weight_deviation=deviation)
        for place, deviation in enumerate(deviations)
    )
    case = smoke_case(replicas=replicas, workers=found)
    return judge_workers(compare(), case, evidence(case, "judged"))


@cases(
    (lambda: workers(0.0, HALF), Evidence, "2 workers agree: judged"),
    (lambda: workers(0.0, 0.0, 0.0, replicas=3), Evidence, "3 workers agree: judged"),
    (lambda: workers(0.0, 0.51), Finding, "on worker 1, weights differ"),
    (lambda: workers(0.0, None), Finding, "losses or weights of worker 1 are not those of worker 0"),
    (lambda: workers(0.0, 0.0, losses=(1.0,)), Finding, "losses or weights of worker 0 are not those of worker 0"),
    (lambda: workers(0.0), Unjudged, "fewer than two workers trained together"),
    (lambda: workers(0.0, 0.0, replicas=1), Unjudged, "fewer than two workers trained together"),
)
def test_workers_must_agree(make: Callable[[], Outcome], kind: type[Outcome], stated: str) -> None:
    outcome = make()
    assert isinstance(outcome, kind)
    assert said_of(outcome).startswith(stated)


def measured(**measures: float | None) -> SmokeCase:
    return smoke_case(replicas=2, measures={name.replace("_of_", " "): value for name, value in measures.items()})


@pytest.mark.parametrize(("way", "kind"), [(3.0, Evidence), (3.01, Finding), (1.0, Evidence)])
def test_clipped_steps_may_move_weights_by_the_limit_and_the_tolerance(way: float, kind: type[Outcome]) -> None:
    """Steps allow 2, and the tolerance half of that."""
    outcome = judge_clipping(compare(), measured(reference_way=way, longest_way=2.0))
    assert isinstance(outcome, kind)
    assert isinstance(judge_clipping(compare(), measured(reference_way=way)), Unjudged)


def precision(name: str = "float16", **measures: float | None) -> Outcome:
    case = smoke_case(name, 2, measures=measures)
    return judge_precision(compare(), case)


@cases(
    (lambda: precision(loss_scale=1.0, variables_float32=6), Evidence, "loss scale 1; "),
    (lambda: precision(loss_scale=1024.0, variables_float32=6), Evidence, "loss scale 1024; "),
    (lambda: precision(loss_scale=0.5, variables_float32=6), Finding, "loss scale fell to 0.5"),
    (lambda: precision(loss_scale=None, variables_float32=6), Finding, "the optimizer has no loss scale"),
    (lambda: precision(loss_scale=1.0, variables_float32=5), Finding, "5 of 6 variables are float32"),
    (lambda: precision("bfloat16", loss_scale=None, variables_float32=6), Evidence, ""),
    (lambda: precision(variables_float32=6), Unjudged, "the precision of its variables was not read"),
    (lambda: precision(loss_scale=1.0), Unjudged, "the precision of its variables was not read"),
)
def test_precision_is_judged_by_the_scale_and_the_variables(
    make: Callable[[], Outcome], kind: type[Outcome], stated: str
) -> None:
    outcome = make()
    assert isinstance(outcome, kind)
    assert said_of(outcome).startswith(stated)


def masks(**measures: float | None) -> Outcome:
    run = smoke_run("smoke.random-layers", 2)
    return judge_masks(run, smoke_case(replicas=2, measures=measures), "Use another seed.")


@cases(
    (lambda: masks(masks=4.0, equal_masks=0.0), Evidence, "equal masks on 2 replicas in 0 of 4 steps"),
    (lambda: masks(masks=4.0, equal_masks=1.0), Finding, "equal masks on 2 replicas in 1 of 4 steps (keras 3.15.1)"),
    (lambda: masks(masks=4.0, equal_masks=0.0, repeated_masks=4.0), Evidence, "equal masks on 2 replicas in 0 of 4"),
    (lambda: masks(masks=4.0, equal_masks=0.0, repeated_masks=3.0), Finding, "with the same seed, 3 of 4 steps drew"),
    (lambda: masks(masks=4.0, equal_masks=0.0, repeated_masks=None), Finding, "with the same seed, 0 of 4 steps drew"),
    (lambda: masks(masks=0.0, equal_masks=0.0), Unjudged, "its masks were not compared"),
    (lambda: masks(masks=4.0), Unjudged, "its masks were not compared"),
)
def test_masks_differ_and_are_reproduced(make: Callable[[], Outcome], kind: type[Outcome], stated: str) -> None:
    outcome = make()
    assert isinstance(outcome, kind)
    assert said_of(outcome).startswith(stated)


@pytest.mark.parametrize(("moved", "compared"), [(50.0, True), (49.9, False), (0.0, False), (None, False)])
def test_optimizer_that_moved_the_weights_too_little_is_not_compared(moved: float | None, *, compared: bool) -> None:
    """The tolerance is 0.5, and weights must move by a hundred times that."""
    case = measured(moved=moved, state=4.0, mirrored_state=4.0, state_deviation=0.0)
    assert has_moved(compare(), case) is compared
    assert isinstance(judge_optimizer(compare(), case), Evidence if compared else Unjudged)
    assert not has_moved(compare(0.001), measured())


@cases(
    ({}, Evidence, "MirroredStrategy, 2 replicas"),
    ({"mirrored_state": 3.0}, Finding, "only 3 of 4 optimizer variables are equal"),
    ({"state": 1.0, "mirrored_state": 0.0}, Finding, "only 0 of 1 optimizer variable are equal"),
    ({"mirrored_state": None}, Unjudged, "the optimizer's variables were not compared"),
    ({"state": None}, Unjudged, "the optimizer's variables were not compared"),
    ({"state_deviation": HALF}, Evidence, "MirroredStrategy, 2 replicas"),
    ({"state_deviation": 0.51}, Finding, "the optimizer's variables differ by up to 0.51"),
    ({"state_deviation": None}, Finding, "the optimizer's variables are not finite"),
)
def test_variables_of_the_optimizer_are_compared(
    changes: dict[str, float | None], kind: type[Outcome], stated: str
) -> None:
    values: dict[str, float | None] = {
        "moved": 50.0,
        "state": 4.0,
        "mirrored_state": 4.0,
        "state_deviation": 0.0,
        **changes,
    }
    outcome = judge_optimizer(compare(), measured(**values))
    assert isinstance(outcome, kind)
    assert said_of(outcome).startswith(stated)


def reported(value: float | None, due: float | None) -> Outcome:
    return judge_reported(compare(), smoke_case(replicas=2, measures={"metric loss": value, "reference loss": due}))


@cases(
    (0.5, 0.5, Evidence, "loss match NumPy"),
    (0.5, 0.25, Finding, "loss is 0.5 instead of 0.25"),
    (None, 0.25, Finding, "loss is not finite instead of 0.25"),
    (0.5, None, Finding, "loss is 0.5 instead of not finite"),
    (0.0, 0.01, Finding, "loss is 0 instead of 0.01"),
    (0.0, 0.00011, Finding, "loss is 0 instead of 0.00011"),
    (0.0, 0.000099, Evidence, "loss match NumPy"),
)
def test_reported_value_is_compared(value: float | None, due: float | None, kind: type[Outcome], stated: str) -> None:
    outcome = reported(value, due)
    assert isinstance(outcome, kind)
    assert said_of(outcome).startswith(stated)


@cases(
    ((9, 9, 9), Status.PASS, "9 predictions for 9 examples, 9 at their place"),
    ((9, 8, 8), Status.FAIL, "8 predictions for 9 examples, 8 at their place"),
    ((9, 9, 8), Status.FAIL, "9 predictions for 9 examples, 8 at their place"),
    ((9, 9, None), Status.UNKNOWN, "its predictions were not counted"),
)
def test_predictions_are_counted(counts: tuple[int | None, ...], status: Status, stated: str) -> None:
    measures = dict(zip(("examples", "predictions", "in_order"), counts, strict=True))
    values = {"metric loss": 0.5, "reference loss": 0.5}
    cases = (
        smoke_case("evaluate", 2, measures=values),
        smoke_case("predict", 2, measures=measures),
        smoke_case("validation", 2, measures=values),
    )
    result = compute_check(evaluate, smoke_run("smoke.evaluate", 2, *cases))
    assert result.status is status
    assert said(result)["training predict"].startswith(stated)
    assert count_predictions(smoke_case(measures={"examples": 1.0})) is None


def judged(check: Any, scenario: str, *cases: SmokeCase, **parameters: Any) -> Result:
    return compute_check(check, smoke_run(scenario, 2, *cases), **parameters)


def test_torch_without_a_result_is_not_judged_by_its_ranks() -> None:
    def judged_fit(**changes: Any) -> Result:
        cases = smoke_case("fit", 2, **changes), smoke_case("distribution", 2, measures={"devices used": 2.0})
        return judged(torch_fit, "smoke.torch-data-parallel", *cases, tolerance=HALF)

    assert judged_fit(outcome="timed-out", phase="train").status is Status.FAIL
    assert judged_fit(measures={"ranks differ": HALF}).status is Status.PASS
    assert judged_fit(measures={"ranks differ": 0.51}).status is Status.FAIL
    refused = judged_fit(outcome="raised", phase="train", error_type="RuntimeError")
    assert "refused: RuntimeError" in said(refused).values()
