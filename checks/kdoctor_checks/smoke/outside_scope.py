"""What becomes of each part of a training that was made outside the scope."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import TOLERANCE, did_not_finish, how_it_ended, name_of, refused
from kdoctor_checks.smoke._strategies import LOSS_TOLERANCE, change_code, each_case, same_losses, weights_problem

_PARTS = ("model", "optimizer", "metric", "compile", "loaded-model")
_OPTIMIZERS = ("sgd", "adam")
_MUST_RAISE = "model"
_MUST_BE_SEEN = "loaded-model"
_ADVICE = "Make model, optimizer and metrics, and load models, inside strategy.scope()."


@check(
    "smoke.outside-scope",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.outside-scope",
)
def outside_scope(
    run: SmokeRun,
    *,
    refusals: tuple[str, ...] = ("AssertionError", "AttributeError", "RuntimeError", "ValueError"),
    tolerance: float = TOLERANCE,
) -> Iterator[Outcome]:
    """Whatever is made outside the strategy's scope is refused, harmless, or seen not to be replicated.

    Why: of model, optimizer, metric and compile, each made outside alone, some are refused and some are not, and that
    changes with Keras and with the optimizer. What is not refused must end with one device's weights, or kdoctor must
    see that it is not replicated (a model that was loaded outside trains on one device in silence). A model outside
    with compile inside must be refused.
    Remedy: make and load everything inside ``with strategy.scope():``.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy#scope
    Failure modes: model_outside_scope, optimizer_outside_scope
    """

    def judge(case: SmokeCase) -> Outcome:
        part = case.name.rpartition("-")[0]
        if refused(case, refusals):
            return Evidence(subject=name_of(case), observed=f"refused: {how_it_ended(case)}")
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if case.weights is None:
            return Unjudged(subject=name_of(case), reason="its weights were not read")
        return _judge_trained(case, part, tolerance)

    yield from each_case(run, [f"{part}-{optimizer}" for part in _PARTS for optimizer in _OPTIMIZERS], judge)


def _judge_trained(case: SmokeCase, part: str, tolerance: float) -> Outcome:
    """A part outside the scope that was not refused."""
    if case.weights is None or case.weight_deviation is None or len(case.losses) != len(case.reference_losses):
        return Unjudged(subject=name_of(case), reason="it was not compared with one device")
    mirrored = f"{case.weights.mirrored} of {case.weights.variables} variables are mirrored"
    if part == _MUST_RAISE:
        return change_code(case, f"it trains, {mirrored}", "an error, for the model is outside the scope", _ADVICE)
    if part == _MUST_BE_SEEN and case.weights.mirrored == 0:
        return Evidence(subject=name_of(case), observed=f"trained on one device in silence, and seen: {mirrored}")
    problem = weights_problem(case.weights)
    if problem is None and case.weight_deviation > tolerance:
        problem = f"weights differ by up to {case.weight_deviation:.2g} from one device's (tolerance {tolerance:g})"
    if problem is None and not same_losses(case, LOSS_TOLERANCE):
        problem = "the losses are far from one device's"
    if problem:
        return change_code(
            case, f"it trains without an error, but {problem}", "an error, or what one device gives", _ADVICE
        )
    return Evidence(
        subject=name_of(case),
        observed=f"harmless: {mirrored}, weights within {case.weight_deviation:.2g} of one device",
    )
