"""Whether a model that was made outside the strategy's scope is refused, or seen not to be replicated."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks.smoke._cases import (
    MEASURE_ONLY,
    did_not_finish,
    how_it_ended,
    missing,
    name_of,
    no_real_spread,
    refused,
)

_COMPILE_INSIDE, _ALL_OUTSIDE = "compile-inside", "all-outside"


@check(
    "smoke.model-outside-scope",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.model-outside-scope",
)
def model_outside_scope(
    run: SmokeRun, *, refusals: tuple[str, ...] = ("AssertionError", "AttributeError", "RuntimeError", "ValueError")
) -> Iterator[Outcome]:
    """A model that was made outside the strategy's scope is refused, or is seen to train on one replica.

    Why: forgetting the scope is the commonest mistake in distributed training. Compiled inside the scope, Keras
    refuses such a model (``refusals`` names the errors, which differ with Keras and the optimizer). With everything
    outside it trains on one device and says nothing while the others idle; kdoctor must see that, or its word that a
    model is replicated is worth nothing. A failure path that does not fail is a failure.
    Remedy: make the model, the optimizer and the metrics inside ``with strategy.scope():``, and count the copies of
    a variable before a long job.
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy#scope
    Failure modes: model_outside_scope
    """
    for name, judge in ((_COMPILE_INSIDE, _judge_compile_inside), (_ALL_OUTSIDE, _judge_all_outside)):
        case = run.case(name)
        if case is None:
            yield missing(run, name)
        elif case.outcome != "trained" and not refused(case, refusals):
            yield did_not_finish(run, case)
        else:
            yield no_real_spread(run, case) or judge(case)


def _judge_compile_inside(case: SmokeCase) -> Outcome:
    if case.outcome == "raised":
        return Evidence(subject=name_of(case), observed=f"refused with {how_it_ended(case)}")
    return _finding(
        case,
        f"it trained over {case.replicas} replicas without an error",
        "fit refuses a model that was made outside the scope",
    )


def _judge_all_outside(case: SmokeCase) -> Outcome:
    if case.outcome == "raised":
        return Evidence(subject=name_of(case), observed=f"not silent: {how_it_ended(case)}")
    weights = case.weights
    if weights is None or not weights.variables:
        return Unjudged(subject=name_of(case), reason="its weights were not read")
    observed = f"{weights.mirrored} of {weights.variables} variables are mirrored on the {case.replicas} replicas"
    if weights.mirrored:
        return _finding(case, observed, "none: kdoctor tells a replicated model from one that is not")
    return Evidence(subject=name_of(case), observed=f"trained on one device in silence, and seen: {observed}")


def _finding(case: SmokeCase, observed: str, expected: str) -> Finding:
    return Finding(
        subject=name_of(case),
        observed=observed,
        expected=expected,
        remedy=Remedy(
            summary="Do not rely on an error or on kdoctor's count here: make model, optimizer and metrics inside "
            "strategy.scope(), and assert in the job that strategy.experimental_local_results(variable) has one copy "
            "for each replica.",
            action=Action.CHANGE_CODE,
        ),
        rollback=MEASURE_ONLY,
    )
