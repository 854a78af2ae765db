from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import (
    LOSS_TOLERANCE,
    evidence,
    finding,
    losses_differ,
    losses_match,
    unknown,
    weights_differ,
    weights_problem,
)
from kdoctor_checks.smoke._trained import trained

_REMEDY = "Create model, optimizer and metrics, and load models, inside strategy.scope()."


@trained("smoke.outside-scope", refusals=("AssertionError", "AttributeError", "RuntimeError", "ValueError"))
def outside_scope(case: SmokeCase, tolerance: float) -> Outcome:
    """Objects created outside the scope raise errors, are harmless, or are detected.

    Why: of model, optimizer, metric and compile, each outside the scope, some raise an error and some do not, depending
    on Keras and the optimizer. What does not raise must match one device, or kdoctor must detect that it is not
    replicated. A model loaded outside trains on one device without an error. A model outside with compile inside must
    raise.
    Remedy: create and load everything inside ``with strategy.scope():``.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy#scope
    Failure modes: model_outside_scope, optimizer_outside_scope
    """
    if case.weights is None:
        return unknown(case, "its weights were not read")
    if case.weight_deviation is None or len(case.losses) != len(case.reference_losses):
        return unknown(case, "it was not compared with one device")
    part = case.name.rpartition("-")[0]
    mirrored = f"{case.weights.mirrored} of {counted(case.weights.variables, 'variable')} mirrored"
    if part == "model":
        expected, brief = "an error, because the model is outside the scope", "trains without an error"
        return finding(case, f"trains, {mirrored}", expected, _REMEDY, brief=brief)
    if part == "loaded-model" and case.weights.mirrored == 0:
        return evidence(case, f"trained on one device without an error, and detected: {mirrored}")
    problem = weights_problem(case.weights)
    if problem is None and case.weight_deviation > tolerance:
        problem = weights_differ(case.weight_deviation, tolerance)
    if problem is None and not losses_match(case.losses, case.reference_losses, LOSS_TOLERANCE):
        problem = losses_differ(case)
    if problem:
        observed, expected = f"trains without an error, but {problem.observed}", "an error, or the result of one device"
        return finding(case, observed, expected, _REMEDY, brief=f"no error, but {problem.brief}")
    return evidence(case, f"harmless: {mirrored}, weights within {case.weight_deviation:.2g} of one device")
