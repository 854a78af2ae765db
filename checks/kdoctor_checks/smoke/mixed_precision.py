from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, Comparison, judge_cases
from kdoctor_checks.smoke._precision import judge_precision


@check(
    "smoke.mixed-precision",
    severity=Severity.ERROR,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.mixed-precision",
)
def mixed_precision(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = 0.01
) -> Iterator[Outcome]:
    """Mixed precision keeps float32 variables, a stable loss scale and accurate weights.

    Why: mixed_float16 scales the loss so that small gradients survive, and lowers the scale whenever a gradient
    overflows. A scale that collapses, or variables in half precision, ruin a long training without an error. The
    weights come close to those of one device in float32 (measured: 5e-5 for float16, 8e-4 for bfloat16).
    Remedy: set the policy before creating the model, let Keras wrap the optimizer, and use compatible versions.
    Source: https://www.tensorflow.org/guide/mixed_precision
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance, loss_tolerance=10 * tolerance)

    yield from judge_cases(run, ("float16", "bfloat16"), lambda case: judge_precision(compare, case))
