from kdoctor.facts import SmokeCase, Weights
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_backends.scenarios import CASES
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_MUST_RAISE = ("not-divisible", "unknown-axis")
_NOTHING, _PARTIAL, _OUTSIDE = "matches-nothing", "partial-path", "model-outside"
_REMEDY = "Assert in the job that variable.value.sharding is what the layout specifies."


@trained(
    "smoke.layout-map",
    cases=CASES["smoke.layout-map"],
    requires=(),
    refusals=("IndivisibleError", "RuntimeError", "ValueError"),
)
def layout_map(case: SmokeCase, tolerance: float) -> Outcome:
    """Layout mistakes raise an error or visibly leave the model unsharded.

    Why: a layout map that matches no variable raises no error: each device then holds the whole model. It happens with
    every renamed layer, and after an upgrade. Up to Keras 3.13, a key may match any part of a variable's path; since
    3.14 it must match the whole path (".*hidden/kernel"). kdoctor must detect that, or its count of sharded variables
    is worthless. A dimension that does not divide and an axis that does not exist must raise.
    Remedy: begin the keys with ".*", create the model in the distribution's scope, and check variable.value.sharding
    before a long job.
    Source: https://keras.io/api/distribution/layout_map/
    Failure modes: jax_layout_ignored
    """
    if case.weights is None or case.weight_deviation is None:
        return unknown(case, "the placement or the values of its variables were not read")
    return _judge_trained(case, case.weights, case.weight_deviation, tolerance)


def _judge_trained(case: SmokeCase, weights: Weights, deviation: float, tolerance: float) -> Outcome:
    """Judge a mistake that was not refused."""
    sharded = f"{weights.sharded} of {counted(weights.variables, 'variable')} sharded"
    if case.name in _MUST_RAISE:
        observed = f"it trained without an error, and {sharded}"
        return finding(case, observed, "an error", _REMEDY, brief="trains without an error")
    if deviation > tolerance:
        observed = f"weights differ by up to {deviation:.2g}, and {sharded}"
        return finding(case, observed, "the weights of one device", _REMEDY, brief="weights differ from one device's")
    if case.name == _NOTHING and weights.sharded:
        expected, brief = "none, because the layout matches no variable", "variables are sharded that should not be"
        return finding(case, sharded, expected, _REMEDY, brief=brief)
    if weights.sharded:
        return evidence(case, f"sharded nevertheless: {sharded}")
    hint = '; the key "hidden/kernel" needs the prefix ".*"' if case.name == _PARTIAL else ""
    return evidence(case, f"trained unsharded without an error: {sharded}{hint}")
