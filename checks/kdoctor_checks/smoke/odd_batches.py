"""Whether batches that are cut unevenly are cut as they should be."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of, wrong_arithmetic
from kdoctor_checks.smoke._strategies import change_code, each_case, falls, in_short, weights_problem


@check(
    "smoke.odd-batches",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.odd-batches",
)
def odd_batches(run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable) -> Iterator[Outcome]:
    """A data set of unknown size trains, and a batch is shared out among the replicas.

    Why: generators have no known size, and their last batch is what is left; every replica is fed here, so it must
    train. And fit takes the global batch: what was meant for each replica is cut by their number, with noisier
    BatchNormalization and idle devices as the price. kdoctor counts the examples that arrive.
    Remedy: multiply the batch size by strategy.num_replicas_in_sync, and drop the remainder.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if case.weights is None or not case.losses:
            return Unjudged(subject=name_of(case), reason="its weights or its losses were not read")
        problem = weights_problem(case.weights) or (None if falls(case) else "the loss does not fall")
        if problem:
            return wrong_arithmetic(run, case, problem, target, packages)
        return (
            _shares(case)
            if case.name == "per-replica-batch"
            else Evidence(subject=name_of(case), observed=in_short(run, case))
        )

    yield from each_case(run, ("unknown-size", "per-replica-batch"), judge)


def _shares(case: SmokeCase) -> Outcome:
    first, all_shares = case.measures.get("first_share"), case.measures.get("shares")
    if first is None or all_shares is None or not case.global_batch or not case.replicas:
        return Unjudged(subject=name_of(case), reason="the replicas' shares were not counted")
    due = -(-case.global_batch // case.replicas)
    observed = (
        f"of a batch of {case.global_batch} the first of {case.replicas} replicas gets {first:.0f} examples, "
        f"all together {all_shares:.0f}"
    )
    if first != due or all_shares != case.global_batch:
        advice = "Do not trust how this environment distributes data: look for a patched tf.data or strategy."
        return change_code(case, observed, f"{due} for the first, {case.global_batch} together", advice)
    return Evidence(subject=name_of(case), observed=observed)
