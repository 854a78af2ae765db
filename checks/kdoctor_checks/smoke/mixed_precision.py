from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, Comparison, Problem, evidence, judge_cases, unknown


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

    def judge(case: SmokeCase) -> Outcome:
        outcome = compare.judge(case)
        if not isinstance(outcome, Evidence) or case.weights is None:
            return outcome
        scale, single = case.measures.get("loss_scale"), case.measures.get("variables_float32")
        if single is None or "loss_scale" not in case.measures:
            return unknown(case, "the precision of its variables was not read")
        if single < case.weights.variables:
            observed = f"{single:.0f} of {counted(case.weights.variables, 'variable')} are float32"
            return compare.wrong(case, Problem(observed, "variables are not float32"))
        if case.name != "float16":
            return outcome
        if scale is None or scale < 1:
            observed = "the optimizer has no loss scale" if scale is None else f"loss scale fell to {scale}"
            return compare.wrong(case, Problem(observed, observed))
        return evidence(case, f"loss scale {scale:g}; {outcome.observed}")

    yield from judge_cases(run, ("float16", "bfloat16"), judge)
