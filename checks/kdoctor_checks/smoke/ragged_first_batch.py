from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import (
    NONFINITE_LOSS,
    TENSORFLOW,
    brief_end,
    evidence,
    finding,
    judge_cases,
    summarize,
    unknown,
    weights_problem,
)

_REMEDY = "Make the batch size a multiple of strategy.num_replicas_in_sync, and batch with drop_remainder=True."


@check(
    "smoke.ragged-first-batch",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.odd-batches",
)
def ragged_first_batch(run: SmokeRun) -> Iterator[Outcome]:
    """Training works if the first batch does not divide over the replicas.

    Why: Keras 3.5 to 3.15.1 on TensorFlow raise InvalidArgumentError (AddN) if the first batch does not divide
    evenly, whatever the later batches do; tf_keras does not. It stops small datasets and debugging runs. This is a
    warning because jobs whose batches divide are not affected.
    Remedy: use a batch size that the number of replicas divides, with drop_remainder=True.
    Source: https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
    Failure modes: keras3_indivisible_global_batch
    """

    def judge(case: SmokeCase) -> Outcome:
        batch = f"first batch of {case.final_batch} over {counted(case.replicas, 'replica')}"
        if case.outcome != "trained":
            observed = f"{describe_end(case)} ({batch})"
            return finding(case, observed, "it trains", _REMEDY, brief=brief_end(case))
        if case.weights is None or not case.losses:
            return unknown(case, "its weights or its losses were not read")
        problem = weights_problem(case.weights) or (NONFINITE_LOSS if None in case.losses else None)
        if problem:
            observed, expected = f"{problem.observed} ({batch})", "finite weights on every replica"
            return finding(case, observed, expected, _REMEDY, brief=problem.brief)
        return evidence(case, f"{batch}; {summarize(run, case)}")

    yield from judge_cases(run, ("fewer-than-replicas", "first-batch-uneven"), judge, trained=False)
