from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._frameworks import this_keras
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, did_not_finish, finding, judge_cases


@check(
    "smoke.gradient-accumulation",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.state",
)
def gradient_accumulation(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Gradient accumulation on all replicas matches one device.

    Why: gradient_accumulation_steps combines several small steps into one update, for models that fill the memory.
    Keras 3.15.1 on TensorFlow raises a RuntimeError about merge_call with more than one replica. This is a warning
    because only jobs that use the option are affected. Skipped on Keras 2, which has no such option.
    Remedy: use larger batches and more replicas instead, or train on JAX with DataParallel, which accumulates them
    (tested by smoke.data-parallel-features).
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_gradient_accumulation
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome == "raised":
            return finding(
                case,
                f"{this_keras(run)} cannot accumulate gradients over replicas: {describe_end(case)}",
                "it trains",
                "Remove gradient_accumulation_steps when training on several replicas, or train on JAX with "
                "keras.distribution.DataParallel.",
                brief="gradients cannot be accumulated over replicas",
            )
        if case.outcome != "trained":
            return did_not_finish(run, case)
        return compare.count_problem(case) or compare.judge(case)

    yield from judge_cases(run, ("accumulation",), judge, trained=False)
