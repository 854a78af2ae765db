from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._frameworks import keras_of
from kdoctor_checks.smoke._judging import TENSORFLOW, evidence, finding, judge_cases, unknown
from kdoctor_checks.smoke._values import count_predictions

_REMEDY = "Use predict instead of predict_on_batch, and fit instead of train_on_batch."


@check(
    "smoke.predict-on-batch",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.evaluate",
)
def predict_on_batch(run: SmokeRun) -> Iterator[Outcome]:
    """`predict_on_batch` returns one prediction for each example.

    Why: Keras 3 gives the whole batch to every replica, and predict_on_batch returns the predictions of all replicas,
    so there are several for each example, without an error. train_on_batch and test_on_batch do the same; their results
    are correct, but every replica does all the work. This is a warning because jobs that call fit, evaluate and
    predict are not affected. The case predict runs the alternative.
    Remedy: call predict instead of predict_on_batch, and fit instead of train_on_batch.
    Source: https://keras.io/api/models/model_training_apis/
    Failure modes: keras3_predict_on_batch
    """

    def judge(case: SmokeCase) -> Outcome:
        counts = count_predictions(case)
        if counts is None:
            return unknown(case, "its predictions were not counted")
        examples, predictions, in_order = counts
        observed = f"{predictions} predictions for {examples} examples"
        if predictions == in_order == examples:
            return evidence(case, observed)
        observed = f"{observed}, {in_order} at their place ({keras_of(run)})"
        brief = "every replica computes the whole batch"
        return finding(case, observed, "one prediction for each example, in order", _REMEDY, brief=brief)

    yield from judge_cases(run, ("predict-on-batch",), judge)
