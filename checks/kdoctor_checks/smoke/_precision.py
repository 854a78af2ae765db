"""Judges trainings in half precision."""

from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import Comparison, Problem, evidence, unknown


def judge_precision(compare: Comparison, case: SmokeCase) -> Outcome:
    """Evidence if the weights are close, the variables are float32, and the loss scale of float16 did not collapse."""
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
