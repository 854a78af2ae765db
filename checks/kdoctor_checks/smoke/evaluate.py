from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import (
    TENSORFLOW,
    TOLERANCE,
    Comparison,
    Problem,
    evidence,
    judge_cases,
    unknown,
)
from kdoctor_checks.smoke._values import count_predictions, judge_reported


@check("smoke.evaluate", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.evaluate")
def evaluate(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """`evaluate`, `predict` and validation use each example once.

    Why: the last batch of a dataset rarely divides. Padding that is counted, a tail that is left out, or predictions in
    another order make a wrong result look plausible. NumPy computes loss and metric of all examples, and the prediction
    of each.
    Remedy: install Keras 3.10 or later, and look for a patched test_step or predict_step.
    Source: https://keras.io/api/models/model_training_apis/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.name != "predict":
            return judge_reported(compare, case)
        counts = count_predictions(case)
        if counts is None:
            return unknown(case, "its predictions were not counted")
        examples, predictions, in_order = counts
        observed = f"{predictions} predictions for {examples} examples, {in_order} at their place"
        if predictions == in_order == examples:
            return evidence(case, observed)
        return compare.wrong(case, Problem(observed, "predictions are not those of the examples"))

    yield from judge_cases(run, ("evaluate", "predict", "validation"), judge)
