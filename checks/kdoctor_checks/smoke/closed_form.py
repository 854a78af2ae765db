from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import Comparison, Problem, unknown, weights_differ
from kdoctor_checks.smoke._trained import trained


@trained("smoke.closed-form", replicated=False)
def closed_form(compare: Comparison, case: SmokeCase) -> Outcome:
    """Linear regression on all replicas matches gradient descent in NumPy.

    Why: a comparison with one device misses defects that one device shares, such as a lost update, a patched optimizer
    or lost examples. Gradient descent on a mean squared error is a few lines of NumPy, so the weights, the losses and
    the number of updates are known without Keras.
    Remedy: look for patched code or a replaced optimizer, or install Keras 3.10 or later.
    Source: https://www.tensorflow.org/guide/core/quickstart_core
    """
    one_device, steps, updates = (case.measures.get(name) for name in ("one_device", "steps", "iterations"))
    if one_device is None or steps is None or updates is None:
        return unknown(case, "the updates or the training on one device were not measured")
    if updates != steps:
        observed = f"the optimizer counts {counted(round(updates), 'update')} after {counted(round(steps), 'step')}"
        return compare.wrong(case, Problem(observed, "the optimizer counts another number of updates than steps"))
    if one_device > compare.tolerance:
        observed = f"on one device, {weights_differ(one_device, compare.tolerance).observed}, compared with NumPy"
        return compare.wrong(case, Problem(observed, "one device's weights differ from NumPy's"))
    return compare.judge(case)
