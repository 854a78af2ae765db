from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._optimizers import FAMILIES, judge_optimizer


@check(
    "smoke.custom-loop-optimizers",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.custom-loop-optimizers",
)
def custom_loop_optimizers(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Custom loops with an optimizer that is built in the scope match fit on one device.

    Why: strategy.run calls the optimizer once on each replica, and the optimizer adds up their gradients itself. This
    is also the alternative that smoke.optimizer-built-late names. It is a warning because a job uses one optimizer;
    smoke.custom-loop, an error, uses SGD. The Nadam of tf_keras 2.21.0 ends with NaN weights here.
    Remedy: train with an optimizer that passes, or with another release of Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    Failure modes: keras2_nadam_custom_loop
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    names = [f"{family}-built-in-scope" for family in FAMILIES]
    yield from judge_cases(run, names, lambda case: judge_optimizer(compare, case))
