from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Finding, Outcome, Remedy, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import NO_ROLLBACK, TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._optimizers import judge_optimizer

_REMEDY = Remedy(
    summary="Train with mixed_bfloat16, which needs no loss scale, or with tf_keras.", action=Action.CHANGE_CODE
)


@check(
    "smoke.loss-scale-overflow",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.optimizer-options",
)
def loss_scale_overflow(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A step in which one replica's gradients overflow is left out on all replicas.

    Why: LossScaleOptimizer, which mixed_float16 uses, must leave out a step whose gradients are not finite, and halve
    its scale. Keras 3 looks at the gradients of the first replica only, before they are added up. If those of another
    replica overflow, all weights become infinite or NaN, without an error. Overflows are normal: the scale grows until
    one happens. This is a warning because only jobs with a loss scale are affected. smoke.mixed-precision trains the
    alternative.
    Remedy: train with mixed_bfloat16, or with tf_keras.
    Source: https://keras.io/api/mixed_precision/loss_scale_optimizer/
    Failure modes: keras3_loss_scale_overflow
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        outcome = judge_optimizer(compare, case)
        if not isinstance(outcome, Finding) or case.outcome != "trained":
            return outcome
        brief = "one replica's overflow ruins the weights"
        return replace(outcome, remedy=_REMEDY, rollback=NO_ROLLBACK, brief=brief)

    yield from judge_cases(run, ("overflow-on-one-replica",), judge)
