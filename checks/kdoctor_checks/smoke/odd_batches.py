from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import (
    TENSORFLOW,
    Comparison,
    Problem,
    evidence,
    finding,
    judge_cases,
    loss_falls,
    summarize,
    unknown,
    weights_problem,
)

_NO_FALL = Problem("the loss does not fall", "the loss does not fall", "weights")


@check(
    "smoke.odd-batches", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.odd-batches"
)
def odd_batches(run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable) -> Iterator[Outcome]:
    """Datasets of unknown size train, and batches are split among the replicas.

    Why: generators have no known size, and their last batch is whatever remains. Every replica gets examples here, so
    it must train. Also, fit takes the global batch size: a batch meant for each replica is split among them, which
    makes BatchNormalization noisier and leaves devices idle. kdoctor counts the examples that arrive.
    Remedy: multiply the batch size by strategy.num_replicas_in_sync, and drop the remainder.
    Source: https://www.tensorflow.org/tutorials/distribute/input
    """
    compare = Comparison(run=run, target=target, packages=packages)

    def judge(case: SmokeCase) -> Outcome:
        if case.weights is None or not case.losses:
            return unknown(case, "its weights or its losses were not read")
        problem = weights_problem(case.weights) or (None if loss_falls(case) else _NO_FALL)
        if problem:
            return compare.wrong(case, problem)
        return _judge_shares(case) if case.name == "per-replica-batch" else evidence(case, summarize(run, case))

    yield from judge_cases(run, ("unknown-size", "per-replica-batch"), judge)


def _judge_shares(case: SmokeCase) -> Outcome:
    first, total = case.measures.get("first_share"), case.measures.get("shares")
    if first is None or total is None or not case.global_batch or not case.replicas:
        return unknown(case, "the replicas' shares were not counted")
    due = -(-case.global_batch // case.replicas)
    observed = (
        f"batch of {case.global_batch} over {counted(case.replicas, 'replica')}: "
        f"{counted(round(first), 'example')} on the first, {total:.0f} in total"
    )
    if first != due or total != case.global_batch:
        remedy = "Look for a patched tf.data or strategy: this environment distributes data incorrectly."
        expected, brief = f"{due} on the first, {case.global_batch} in total", "batches are split incorrectly"
        return finding(case, observed, expected, remedy, brief=brief)
    return evidence(case, observed)
