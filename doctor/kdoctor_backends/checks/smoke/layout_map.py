from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun, Weights
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_backends.scenarios import CASES
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TOLERANCE, evidence, finding, judge_cases, unknown

_MUST_RAISE = ("not-divisible", "unknown-axis")
_NOTHING, _PARTIAL, _OUTSIDE = "matches-nothing", "partial-path", "model-outside"
_REMEDY = "Assert in the job that variable.value.sharding is what the layout specifies."


@check("smoke.layout-map", severity=Severity.ERROR, scenario="smoke.layout-map", explained_by=NO_GPU)
def layout_map(
    run: SmokeRun,
    *,
    refusals: tuple[str, ...] = ("IndivisibleError", "RuntimeError", "ValueError"),
    tolerance: float = TOLERANCE,
) -> Iterator[Outcome]:
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

    def judge(case: SmokeCase) -> Outcome:
        if case.weights is None or case.weight_deviation is None:
            return unknown(case, "the placement or the values of its variables were not read")
        return _judge_trained(case, case.weights, case.weight_deviation, tolerance)

    yield from judge_cases(run, CASES["smoke.layout-map"], judge, refusals=refusals)


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
