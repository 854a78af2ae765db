from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import in_phase
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, did_not_finish, finding, judge_cases
from kdoctor_checks.smoke._optimizers import FAMILIES, judge_optimizer

_REMEDY = "Call optimizer.build(model.trainable_variables) inside with strategy.scope(), before the first step."
_ERROR = "InvalidArgumentError"
"""What Keras 3 raises: TensorFlow asks for the value of a placeholder."""


@check(
    "smoke.optimizer-built-late",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.custom-loop-optimizers",
)
def optimizer_built_late(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Custom loops whose first step builds the optimizer match one device.

    Why: Keras 3 on TensorFlow raises InvalidArgumentError (keras#23085) if strategy.run builds an optimizer with state
    inside tf.function, as many published loops do. This is a warning because fit is not affected.
    smoke.custom-loop-optimizers trains the alternative with each optimizer.
    Remedy: call optimizer.build(model.trainable_variables) in the strategy's scope.
    Source: https://github.com/keras-team/keras/issues/23085
    Failure modes: keras3_optimizer_built_late
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.error_type == _ERROR:
            brief = "custom loops fail if their first step builds the optimizer"
            return finding(
                case,
                f"{_ERROR} {in_phase(case.phase)} ({keras_of(run)})",
                "it trains",
                _REMEDY,
                brief=brief,
            )
        return judge_optimizer(compare, case) if case.outcome == "trained" else did_not_finish(run, case)

    yield from judge_cases(run, [f"{family}-built-late" for family in FAMILIES], judge, trained=False)
