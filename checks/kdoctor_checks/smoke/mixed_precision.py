"""Whether half precision is sound over several replicas."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import name_of, wrong_arithmetic
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check(
    "smoke.mixed-precision",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.mixed-precision",
)
def mixed_precision(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = 0.01
) -> Iterator[Outcome]:
    """Half precision over all replicas keeps variables in single precision, a sound loss scale and the weights near.

    Why: mixed_float16 multiplies the loss so that small gradients survive, and lowers that scale whenever a gradient
    overflows. A scale that collapses, or variables in half precision, end a long training without an error. The
    weights come near those of one device in single precision (measured: 5e-5 for float16, 8e-4 for bfloat16).
    Remedy: make the policy before the model, let Keras wrap the optimizer, and use versions that work together.
    Source: https://www.tensorflow.org/guide/mixed_precision
    """

    def judge(case: SmokeCase) -> Outcome:
        outcome = equals_one_device(run, case, target, packages, tolerance=tolerance, loss_tolerance=10 * tolerance)
        if not isinstance(outcome, Evidence) or case.weights is None:
            return outcome
        scale, single = case.measures.get("loss_scale"), case.measures.get("variables_float32")
        if single is None or "loss_scale" not in case.measures:
            return Unjudged(subject=name_of(case), reason="its variables' precision was not read")
        if single < case.weights.variables:
            observed = f"{single:.0f} of {case.weights.variables} variables are in single precision"
            return wrong_arithmetic(run, case, observed, target, packages)
        if case.name != "float16":
            return outcome
        if scale is None or scale < 1:
            observed = f"the loss scale fell to {scale}" if scale is not None else "there is no loss scale"
            return wrong_arithmetic(run, case, observed, target, packages)
        return Evidence(subject=outcome.subject, observed=f"loss scale {scale:g}; {outcome.observed}")

    yield from each_case(run, ("float16", "bfloat16"), judge)
