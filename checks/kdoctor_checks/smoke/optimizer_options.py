from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._optimizers import judge_optimizer

_CASES = ("weight-decay", "ema", "exponential-decay", "piecewise-decay", "cosine-decay", "loss-scale")


@check(
    "smoke.optimizer-options",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.optimizer-options",
)
def optimizer_options(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Weight decay, moving averages, learning-rate schedules and loss scales act as on one device.

    Why: weight decay and averages change the weights in addition to the gradient, and a schedule counts steps. Done
    once for each replica instead of once for each step, they train another model without an error. This is a warning
    because only jobs that use the option are affected.
    Remedy: leave out the option, or train with another release of Keras.
    Source: https://keras.io/api/optimizers/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(run, _CASES, lambda case: judge_optimizer(compare, case))
