"""Whether a first batch that does not divide is survived."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import how_it_ended, name_of
from kdoctor_checks.smoke._strategies import change_code, each_case, in_short, weights_problem


@check(
    "smoke.ragged-first-batch",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.odd-batches",
)
def ragged_first_batch(run: SmokeRun) -> Iterator[Outcome]:
    """A first batch that does not divide over the replicas trains, and so does a data set smaller than they are.

    Why: Keras 3.5 to 3.15.1 on TensorFlow raise InvalidArgumentError (AddN) if the very first batch does not divide
    evenly, whatever the later ones do; tf_keras does not. It stops small data sets and debugging runs, and touches no
    job whose batches divide: hence a warning.
    Remedy: choose a batch that the number of replicas divides, with drop_remainder=True.
    Source: https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
    Failure modes: keras3_indivisible_global_batch
    """

    def judge(case: SmokeCase) -> Outcome:
        advice = "Make the batch a multiple of strategy.num_replicas_in_sync, and batch with drop_remainder=True."
        batch = f"first batch of {case.final_batch} over {case.replicas} replicas"
        if case.outcome != "trained":
            return change_code(case, f"{batch}: {how_it_ended(case)}", "it trains", advice)
        if case.weights is None or not case.losses:
            return Unjudged(subject=name_of(case), reason="its weights or its losses were not read")
        problem = weights_problem(case.weights) or ("a loss is not finite" if None in case.losses else None)
        if problem:
            return change_code(case, f"{batch}: {problem}", "finite weights on every replica", advice)
        return Evidence(subject=name_of(case), observed=f"{batch}: {in_short(run, case)}")

    yield from each_case(run, ("fewer-than-replicas", "first-batch-uneven"), judge)
