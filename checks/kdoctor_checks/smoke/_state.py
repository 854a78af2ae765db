"""What an optimizer, a metric and a callback counted, against what was due."""

from __future__ import annotations

import math

from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Finding, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of, wrong_arithmetic
from kdoctor_checks.smoke._strategies import LOSS_TOLERANCE


def counted(
    run: SmokeRun, case: SmokeCase, target: Target | Unavailable, packages: Packages | Unavailable
) -> Finding | Unjudged | None:
    """What is wrong with the counts of updates, steps and epochs, or with the metric; None if nothing is."""
    if case.outcome != "trained":
        return did_not_finish(run, case)
    for what in ("updates", "steps", "epochs"):
        due, done = case.measures.get(f"due {what}"), case.measures.get(f"done {what}")
        if due is None or done is None:
            return Unjudged(subject=name_of(case), reason=f"its {what} were not counted")
        if due != done:
            observed = f"{done:.0f} {what} were counted where {due:.0f} were due"
            return wrong_arithmetic(run, case, observed, target, packages)
    metric, reference = case.measures.get("metric"), case.measures.get("metric_reference")
    if metric is None or reference is None:
        return Unjudged(subject=name_of(case), reason="its metric was not compared with one device")
    if not math.isclose(metric, reference, rel_tol=LOSS_TOLERANCE):
        observed = f"the mean absolute error is {metric:.4g}, on one device {reference:.4g}"
        return wrong_arithmetic(run, case, observed, target, packages)
    return None
