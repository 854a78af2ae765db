from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import (
    TENSORFLOW,
    TOLERANCE,
    Comparison,
    Problem,
    judge_cases,
    unknown,
    weights_differ,
)


@check(
    "smoke.closed-form", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.closed-form"
)
def closed_form(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Linear regression on all replicas matches gradient descent in NumPy.

    Why: a comparison with one device misses defects that one device shares, such as a lost update, a patched optimizer
    or lost examples. Gradient descent on a mean squared error is a few lines of NumPy, so the weights, the losses and
    the number of updates are known without Keras.
    Remedy: look for patched code or a replaced optimizer, or install Keras 3.10 or later.
    Source: https://www.tensorflow.org/guide/core/quickstart_core
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        one_device, steps, updates = (case.measures.get(name) for name in ("one_device", "steps", "iterations"))
        if one_device is None or steps is None or updates is None:
            return unknown(case, "the updates or the training on one device were not measured")
        if updates != steps:
            observed = f"the optimizer counts {counted(round(updates), 'update')} after {counted(round(steps), 'step')}"
            return compare.wrong(case, Problem(observed, "the optimizer counts another number of updates than steps"))
        if one_device > tolerance:
            observed = f"on one device, {weights_differ(one_device, tolerance).observed}, compared with NumPy"
            return compare.wrong(case, Problem(observed, "one device's weights differ from NumPy's"))
        return compare.judge(case)

    yield from judge_cases(run, ("mirrored",), judge, replicated=False)
