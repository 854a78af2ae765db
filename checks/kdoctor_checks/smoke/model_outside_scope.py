from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._cases import describe_end, was_refused
from kdoctor_checks.smoke._judging import did_not_finish, evidence, finding, not_replicated, unknown
from kdoctor_checks.smoke._trained import trained

_REMEDY = (
    "Create model, optimizer and metrics inside strategy.scope(), and assert that a variable has one copy per replica."
)


@trained("smoke.model-outside-scope", replicated=False, finished=False)
def model_outside_scope(
    run: SmokeRun,
    case: SmokeCase,
    *,
    refusals: tuple[str, ...] = ("AssertionError", "AttributeError", "RuntimeError", "ValueError"),
) -> Outcome:
    """A model created outside the scope raises an error or is detected.

    Why: forgetting the scope is the most common mistake in distributed training. If the model is compiled inside the
    scope, Keras raises (``refusals`` lists the errors, which differ by Keras version and optimizer). If everything is
    outside, it trains on one device without an error while the others idle. kdoctor must detect that, or its count of
    mirrored variables is worthless.
    Remedy: create model, optimizer and metrics inside ``with strategy.scope():``, and count the copies of a variable
    before a long job.
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy#scope
    Failure modes: model_outside_scope
    """
    if case.outcome != "trained" and not was_refused(case, refusals):
        return did_not_finish(run, case)
    return not_replicated(run, case) or _judge(case)


def _judge(case: SmokeCase) -> Outcome:
    if case.outcome == "raised":
        return evidence(case, f"refused: {describe_end(case)}")
    if case.name == "compile-inside":
        return finding(
            case, f"trained on {counted(case.replicas, 'replica')} without an error", "an error from fit", _REMEDY
        )
    weights = case.weights
    if weights is None or not weights.variables:
        return unknown(case, "its weights were not read")
    mirrored = f"{weights.mirrored} of {counted(weights.variables, 'variable')} mirrored"
    observed = f"{mirrored} on {counted(case.replicas, 'replica')}"
    if weights.mirrored:
        expected, brief = "none, because the model was created outside the scope", "the mistake is not detected"
        return finding(case, observed, expected, _REMEDY, brief=brief)
    return evidence(case, f"trained on one device without an error, and detected: {observed}")
