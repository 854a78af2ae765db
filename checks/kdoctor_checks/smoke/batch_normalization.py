from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import NONFINITE_LOSS, Comparison, evidence, summarize, unknown, weights_problem
from kdoctor_checks.smoke._trained import trained


@trained("smoke.batch-normalization")
def batch_normalization(compare: Comparison, case: SmokeCase) -> Outcome:
    """BatchNormalization stays finite and, if synchronized, matches one device.

    Why: without synchronization each replica normalizes its own examples. The result differs from one device, more so
    with fewer examples per replica; that is expected, and its size is reported as evidence. With synchronized=True the
    moments are those of the whole batch, so the weights must match.
    Remedy: install a Keras that sums the moments correctly (3.10 or later); for small shares use synchronized=True.
    Source: https://keras.io/api/layers/normalization_layers/batch_normalization/
    """
    if case.name == "synchronized":
        return compare.judge(case)
    if case.weights is None or (case.weight_deviation is None and not case.weights.nonfinite):
        return unknown(case, "its weights were not read")
    problem = weights_problem(case.weights) or (NONFINITE_LOSS if None in case.losses else None)
    return compare.wrong(case, problem) if problem else evidence(case, summarize(compare.run, case))
