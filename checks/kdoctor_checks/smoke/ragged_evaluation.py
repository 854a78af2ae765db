from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import (
    TENSORFLOW,
    TOLERANCE,
    Comparison,
    brief_end,
    did_not_finish,
    finding,
    judge_cases,
)
from kdoctor_checks.smoke._values import judge_reported

_REMEDY = (
    "Give evaluate a batch_size, and fit a validation_batch_size, of at most the number of examples and a multiple of "
    "the replicas."
)


@check(
    "smoke.ragged-evaluation",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.evaluate",
)
def ragged_evaluation(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """`evaluate` works if its first batch does not divide over the replicas.

    Why: Keras 3 on TensorFlow raises InvalidArgumentError (AddN) if the first batch of evaluate, or of the validation
    data of fit, does not divide evenly: an odd number of examples, and fewer than one batch. fit has trained an epoch
    by then. predict is not affected. This is a warning because data of one batch and more is not affected. The case
    evaluate of smoke.evaluate runs the alternative.
    Remedy: use a smaller batch size, so that the first batch is full and the number of replicas divides it.
    Source: https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
    Failure modes: keras3_indivisible_global_batch
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.error_type != "InvalidArgumentError":
            return judge_reported(compare, case) if case.outcome == "trained" else did_not_finish(run, case)
        observed = f"{describe_end(case)} ({keras_of(run)})"
        return finding(case, observed, "loss and metric of all examples", _REMEDY, brief=brief_end(case))

    yield from judge_cases(run, ("first-batch-uneven",), judge, trained=False)
