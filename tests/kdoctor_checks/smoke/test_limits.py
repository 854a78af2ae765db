"""The limits of what the checks of trainings share, at the limit and just beyond it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helpers.facts import packages, smoke_case, smoke_run, target
from helpers.saying import said
from kdoctor.engine.report import Result
from kdoctor.facts import SmokeCase, SmokeWorker, Weights
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
from kdoctor_checks.smoke.lost_worker import lost_worker
from kdoctor_checks.smoke.no_such_device import no_such_device
from kdoctor_checks.smoke.parameter_server import parameter_server
from kdoctor_checks.smoke.persistence import persistence
from kdoctor_checks.smoke.starved_replica import starved_replica
from kdoctor_checks.smoke.uneven_final_batch import uneven_final_batch

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


@pytest.mark.parametrize(
    ("make", "kind", "stated"),
    [
        (lambda: workers(0.0, HALF), Evidence, "2 workers agree: judged"),
        (lambda: workers(0.0, 0.0, 0.0, replicas=3), Evidence, "3 workers agree: judged"),
        (lambda: workers(0.0, 0.51), Finding, "on worker 1, weights differ"),
        (lambda: workers(0.0, None), Finding, "losses or weights of worker 1 are not those of worker 0"),
        (lambda: workers(0.0, 0.0, losses=(1.0,)), Finding, "losses or weights of worker 0 are not those of worker 0"),
        (lambda: workers(0.0), Unjudged, "fewer than two workers trained together"),
        (lambda: workers(0.0, 0.0, replicas=1), Unjudged, "fewer than two workers trained together"),
    ],
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


@pytest.mark.parametrize(
    ("make", "kind", "stated"),
    [
        (lambda: precision(loss_scale=1.0, variables_float32=6), Evidence, "loss scale 1; "),
        (lambda: precision(loss_scale=1024.0, variables_float32=6), Evidence, "loss scale 1024; "),
        (lambda: precision(loss_scale=0.5, variables_float32=6), Finding, "loss scale fell to 0.5"),
        (lambda: precision(loss_scale=None, variables_float32=6), Finding, "the optimizer has no loss scale"),
        (lambda: precision(loss_scale=1.0, variables_float32=5), Finding, "5 of 6 variables are float32"),
        (lambda: precision("bfloat16", loss_scale=None, variables_float32=6), Evidence, ""),
        (lambda: precision(variables_float32=6), Unjudged, "the precision of its variables was not read"),
        (lambda: precision(loss_scale=1.0), Unjudged, "the precision of its variables was not read"),
    ],
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


@pytest.mark.parametrize(
    ("make", "kind", "stated"),
    [
        (lambda: masks(masks=4.0, equal_masks=0.0), Evidence, "equal masks on 2 replicas in 0 of 4 steps"),
        (
            lambda: masks(masks=4.0, equal_masks=1.0),
            Finding,
            "equal masks on 2 replicas in 1 of 4 steps (keras 3.15.1)",
        ),
        (
            lambda: masks(masks=4.0, equal_masks=0.0, repeated_masks=4.0),
            Evidence,
            "equal masks on 2 replicas in 0 of 4",
        ),
        (
            lambda: masks(masks=4.0, equal_masks=0.0, repeated_masks=3.0),
            Finding,
            "with the same seed, 3 of 4 steps drew",
        ),
        (
            lambda: masks(masks=4.0, equal_masks=0.0, repeated_masks=None),
            Finding,
            "with the same seed, 0 of 4 steps drew",
        ),
        (lambda: masks(masks=0.0, equal_masks=0.0), Unjudged, "its masks were not compared"),
        (lambda: masks(masks=4.0), Unjudged, "its masks were not compared"),
    ],
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


@pytest.mark.parametrize(
    ("changes", "kind", "stated"),
    [
        ({}, Evidence, "MirroredStrategy, 2 replicas"),
        ({"mirrored_state": 3.0}, Finding, "only 3 of 4 optimizer variables are equal"),
        ({"state": 1.0, "mirrored_state": 0.0}, Finding, "only 0 of 1 optimizer variable are equal"),
        ({"mirrored_state": None}, Unjudged, "the optimizer's variables were not compared"),
        ({"state": None}, Unjudged, "the optimizer's variables were not compared"),
        ({"state_deviation": HALF}, Evidence, "MirroredStrategy, 2 replicas"),
        ({"state_deviation": 0.51}, Finding, "the optimizer's variables differ by up to 0.51"),
        ({"state_deviation": None}, Finding, "the optimizer's variables are not finite"),
    ],
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


@pytest.mark.parametrize(
    ("value", "due", "kind", "stated"),
    [
        (0.5, 0.5, Evidence, "loss match NumPy"),
        (0.5, 0.25, Finding, "loss is 0.5 instead of 0.25"),
        (None, 0.25, Finding, "loss is not finite instead of 0.25"),
        (0.5, None, Finding, "loss is 0.5 instead of not finite"),
        (0.0, 0.01, Finding, "loss is 0 instead of 0.01"),
        (0.0, 0.00011, Finding, "loss is 0 instead of 0.00011"),
        (0.0, 0.000099, Evidence, "loss match NumPy"),
    ],
)
def test_reported_value_is_compared(value: float | None, due: float | None, kind: type[Outcome], stated: str) -> None:
    outcome = reported(value, due)
    assert isinstance(outcome, kind)
    assert said_of(outcome).startswith(stated)


@pytest.mark.parametrize(
    ("counts", "status", "stated"),
    [
        ((9, 9, 9), Status.PASS, "9 predictions for 9 examples, 9 at their place"),
        ((9, 8, 8), Status.FAIL, "8 predictions for 9 examples, 8 at their place"),
        ((9, 9, 8), Status.FAIL, "9 predictions for 9 examples, 8 at their place"),
        ((9, 9, None), Status.UNKNOWN, "its predictions were not counted"),
    ],
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


def resumed(after: float, deviation: float) -> Result:
    equal = {"equal on 2 replicas": 6.0, "variables": 6.0}
    case = smoke_case(
        "backup-and-restore", 2, measures={"epochs": 4.0, "epochs_after": after}, weight_deviation=deviation
    )
    cases = (smoke_case("model-file", 2, measures=equal), smoke_case("weights-file", 2, measures=equal), case)
    return judged(persistence, "smoke.persistence", *cases, tolerance=HALF)


@pytest.mark.parametrize(
    ("after", "deviation", "stated"),
    [
        (2.0, HALF, "resumed with 2 of 4 epochs left; weights within 0.5"),
        (2.0, 0.51, "weights differ by up to 0.51 from those of an uninterrupted training"),
        (3.0, 0.0, "resumed with 3 of 4 epochs left; weights within 0"),
        (4.0, 0.0, "4 of 4 epochs were trained after the interruption: it started over"),
    ],
)
def test_resumed_training_is_stated(after: float, deviation: float, stated: str) -> None:
    assert stated in said(resumed(after, deviation)).values()


@pytest.mark.parametrize(("deviation", "status"), [(HALF, Status.PASS), (0.51, Status.FAIL)])
def test_weights_of_full_batches_may_differ_by_the_tolerance(deviation: float, status: Status) -> None:
    cases = smoke_case("fed-tail", 2), smoke_case("guarded", 2, weight_deviation=deviation)
    assert judged(uneven_final_batch, "smoke.uneven-final-batch", *cases, tolerance=HALF).status is status


def lost(first: SmokeWorker, **measures: float | None) -> str:
    others = SmokeWorker(name="worker 1", outcome="died", signal="SIGKILL")
    cases = [smoke_case(name, 2, workers=(first, others), measures=measures) for name in ("dies", "never-comes")]
    return next(iter(said(judged(lost_worker, "smoke.lost-worker", *cases)).values()))


def worker(outcome: Any, **facts: Any) -> SmokeWorker:
    return SmokeWorker(name="worker 0", outcome=outcome, phase="train", **facts)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: lost(worker("raised", error_type="X"), patience_s=25.0, others_s=9.6),
            "worker 0 ended with X after 10 s",
        ),
        (
            lambda: lost(worker("died", signal="SIGABRT"), patience_s=25.0, others_s=3.0),
            "worker 0 ended with SIGABRT after 3 s",
        ),
        (lambda: lost(worker("died"), patience_s=25.0, others_s=3.0), "worker 0 ended with an exit after 3 s"),
        (lambda: lost(worker("trained"), patience_s=25.0, others_s=3.0), "worker 0 continued training alone"),
        (lambda: lost(worker("raised"), others_s=3.0), "the workers were not watched"),
    ],
)
def test_end_of_the_other_workers_is_stated(make: Callable[[], str], expected: str) -> None:
    assert make() == expected


def test_patience_with_the_other_workers_is_stated() -> None:
    assert lost(worker("timed-out"), patience_s=25.0).endswith("without an error; kdoctor ended it after 25 s")
    assert lost(worker("raised"), patience_s=None).endswith("kdoctor ended it after 0 s")


def process(outcome: Any, **facts: Any) -> str:
    case = smoke_case("no-such-device", 2, workers=(worker(outcome, **facts),))
    return next(iter(said(judged(no_such_device, "smoke.misuse", case)).values()))


def test_end_of_a_training_on_a_missing_device_is_stated() -> None:
    assert process("raised", error_type="ValueError") == "refused with ValueError"
    assert process("trained") == "trains on 2 replicas, one of which does not exist"
    assert process("died", signal="SIGSEGV", exit_code=-11) == "terminated by SIGSEGV"
    assert process("died", exit_code=3) == "terminated by 3"
    assert process("timed-out", seconds=25.0).endswith("without an error; kdoctor ended it after 25 s")
    assert process("timed-out").endswith("without an error; kdoctor ended it")


def served(finite: float, losses: tuple[float, ...] = (1.0, 0.5), **measures: float) -> Result:
    found = {"weights": 6.0, "finite": finite, **measures}
    return judged(
        parameter_server, "smoke.parameter-server", smoke_case("custom-loop", 2, measures=found, losses=losses)
    )


def test_parameter_servers_are_judged_by_weights_and_losses() -> None:
    assert list(said(served(6.0, workers=2.0)).values()) == ["2 workers; losses 1, 0.5"]
    assert list(said(served(6.0)).values()) == ["0 workers; losses 1, 0.5"]
    assert list(said(served(5.0)).values()) == ["5 of 6 weights are finite; losses 1, 0.5"]
    assert served(6.0, (0.5, 1.0)).status is Status.FAIL
    assert served(6.0, (1.0,)).status is Status.UNKNOWN


def test_torch_without_a_result_is_not_judged_by_its_ranks() -> None:
    def judged_fit(**changes: Any) -> Result:
        cases = smoke_case("fit", 2, **changes), smoke_case("distribution", 2, measures={"devices used": 2.0})
        return judged(torch_fit, "smoke.torch-data-parallel", *cases, tolerance=HALF)

    assert judged_fit(outcome="timed-out", phase="train").status is Status.FAIL
    assert judged_fit(measures={"ranks differ": HALF}).status is Status.PASS
    assert judged_fit(measures={"ranks differ": 0.51}).status is Status.FAIL
    refused = judged_fit(outcome="raised", phase="train", error_type="RuntimeError")
    assert "refused: RuntimeError" in said(refused).values()


NAN = Weights(variables=6, mirrored=6, nonfinite=("a/gamma",), replicas_agree=True)


@pytest.mark.parametrize(
    ("changes", "status", "stated"),
    [
        ({}, Status.PASS, "weights stay finite after a final batch of 1 over 2 replicas; reported losses are 1, 0.5"),
        ({"final_batch": 2}, Status.UNKNOWN, "final batch of 2 over 2 replicas: no replica is empty"),
        ({"weights": NAN}, Status.FAIL, "NaN or infinity in 1 variable (a/gamma) after a final batch of 1 over 2"),
        ({"losses": (1.0, None)}, Status.FAIL, "weights are finite after a final batch of 1 over 2 replicas, but "),
        ({"losses": ()}, Status.UNKNOWN, "its weights or its losses were not read"),
    ],
)
def test_starved_replica_is_stated(changes: dict[str, Any], status: Status, stated: str) -> None:
    case = smoke_case("starved-tail", 2, **{"final_batch": 1, **changes})
    result = judged(starved_replica, "smoke.uneven-final-batch", case)
    assert result.status is status
    assert next(iter(said(result).values())).startswith(stated)
