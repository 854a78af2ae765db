"""Whether Keras computes what gradient descent is, by an oracle that is not Keras."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import TOLERANCE, did_not_finish, name_of, wrong_arithmetic
from kdoctor_checks.smoke._strategies import each_case, equals_one_device


@check(
    "smoke.closed-form",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.closed-form",
)
def closed_form(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Linear regression over all replicas ends with the weights that NumPy computes.

    Why: a defect that one device shares with many (an update that is left out, a patched optimizer, examples that are
    lost) does not show when the two are compared. Gradient descent on a mean squared error is a few lines of NumPy,
    so the result is known without Keras: the weights, the losses, and the number of updates.
    Remedy: look for patched code or a replaced optimizer, or install a Keras that reduces gradients rightly (3.10 or
    later).
    Source: https://www.tensorflow.org/guide/core/quickstart_core
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        alone, steps, updates = (case.measures.get(name) for name in ("one_device", "steps", "iterations"))
        if alone is None or steps is None or updates is None:
            return Unjudged(subject=name_of(case), reason="one device or the updates were not measured")
        if updates != steps:
            observed = f"the optimizer counts {updates:.0f} updates after {steps:.0f} steps"
            return wrong_arithmetic(run, case, observed, target, packages)
        if alone > tolerance:
            observed = f"on one device already, weights differ from NumPy's by {alone:.2g} (tolerance {tolerance:g})"
            return wrong_arithmetic(run, case, observed, target, packages)
        return equals_one_device(run, case, target, packages, tolerance=tolerance)

    yield from each_case(run, ("mirrored",), judge, spread=False)
