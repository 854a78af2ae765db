"""Whether a layout that cannot be followed is refused, or seen not to be followed."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun, Weights
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import TOLERANCE, did_not_finish, how_it_ended, name_of, refused
from kdoctor_checks.smoke._strategies import change_code, each_case

_MUST_RAISE = ("not-divisible", "unknown-axis")
_NOTHING, _PARTIAL, _OUTSIDE = "matches-nothing", "partial-path", "model-outside"


@check("smoke.layout-map", severity=Severity.ERROR, scenario="smoke.layout-map")
def layout_map(
    run: SmokeRun,
    *,
    refusals: tuple[str, ...] = ("IndivisibleError", "RuntimeError", "ValueError"),
    tolerance: float = TOLERANCE,
) -> Iterator[Outcome]:
    """A layout that cannot be followed is refused, or is seen to leave every variable whole.

    Why: a layout map that matches no variable says nothing: each device then holds the whole model. It happens with
    every renamed layer, and with an upgrade: up to Keras 3.13 a key may be any part of a variable's path, Keras 3.14
    wants the whole of it (".*hidden/kernel"). kdoctor must see that, or its word that a model is cut up is worth
    nothing. A dimension that does not divide and an axis that is not there must raise.
    Remedy: begin the keys with ".*", make the model in the distribution's scope, and count the variables that are cut
    (variable.value.sharding) before a long job.
    Source: https://keras.io/api/distribution/layout_map/
    """

    def judge(case: SmokeCase) -> Outcome:
        if refused(case, refusals):
            return Evidence(subject=name_of(case), observed=f"refused: {how_it_ended(case)}")
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if case.weights is None or case.weight_deviation is None:
            return Unjudged(subject=name_of(case), reason="it was not seen where its variables live, or what they hold")
        return _judge_trained(case, case.weights, tolerance)

    yield from each_case(run, (_NOTHING, _PARTIAL, *_MUST_RAISE, _OUTSIDE), judge)


def _judge_trained(case: SmokeCase, weights: Weights, tolerance: float) -> Outcome:
    """A mistake that was not refused."""
    cut = f"{weights.sharded} of {weights.variables} variables are cut up"
    advice = (
        "Do not rely on an error or on kdoctor's count here: assert in the job that variable.value.sharding is what "
        "the layout asks for."
    )
    if case.name in _MUST_RAISE:
        return change_code(case, f"it trained without an error, and {cut}", "an error", advice)
    if case.weight_deviation is not None and case.weight_deviation > tolerance:
        observed = f"weights differ by up to {case.weight_deviation:.2g} from one device's, and {cut}"
        return change_code(case, observed, "the weights of one device", advice)
    if case.name == _NOTHING and weights.sharded:
        return change_code(case, cut, "none: kdoctor tells a model that is cut up from one that is not", advice)
    how = "cut up all the same" if weights.sharded else "trained whole in silence, and seen"
    hint = ': the key "hidden/kernel" needs ".*" before it' if case.name == _PARTIAL and not weights.sharded else ""
    return Evidence(subject=name_of(case), observed=f"{how}: {cut}{hint}")
