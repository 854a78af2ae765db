from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison, Problem, evidence, unknown
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import count_predictions, judge_reported


@trained("smoke.evaluate")
def evaluate(compare: Comparison, case: SmokeCase) -> Outcome:
    """`evaluate`, `predict` and validation use each example once.

    Why: the last batch of a dataset rarely divides. Padding that is counted, a tail that is left out, or predictions in
    another order make a wrong result look plausible. NumPy computes loss and metric of all examples, and the prediction
    of each.
    Remedy: install Keras 3.10 or later, and look for a patched test_step or predict_step.
    Source: https://keras.io/api/models/model_training_apis/
    """
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
