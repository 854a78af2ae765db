from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._cases import describe_end, format_losses
from kdoctor_checks.smoke._judging import brief_end, evidence, finding, not_replicated, starves, unknown
from kdoctor_checks.smoke._trained import trained

_REMEDY = (
    "Use dataset.batch(n, drop_remainder=True), BatchNormalization(synchronized=True), or repeat() with "
    "steps_per_epoch."
)


@trained(
    "smoke.starved-replica",
    severity=Severity.WARNING,
    scenario="smoke.uneven-final-batch",
    replicated=False,
    finished=False,
)
def starved_replica(run: SmokeRun, case: SmokeCase) -> Outcome:
    """A final batch that leaves a replica empty keeps BatchNormalization finite.

    Why: TensorFlow splits a batch of n examples over R replicas into chunks of ceil(n / R). Replica r gets nothing if r
    * ceil(n / R) >= n. With Keras 3 the moments of its empty share are NaN, and the weights of all replicas become NaN
    without an error. The loss of that epoch is still finite, so it shows an epoch later, or in production. This is a
    warning because many jobs have no such final batch, or guard against it.
    Remedy: drop the remainder, synchronize the normalization, or repeat the data and set steps_per_epoch.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
        https://keras.io/api/layers/normalization_layers/batch_normalization/
    Failure modes: keras3_bn_empty_replica
    """
    if case.outcome != "trained":
        return finding(case, describe_end(case), "finite weights", _REMEDY, brief=brief_end(case))
    return not_replicated(run, case) or _judge_trained(run, case)


def _judge_trained(run: SmokeRun, case: SmokeCase) -> Outcome:
    if case.weights is None or not case.losses:
        return unknown(case, "its weights or its losses were not read")
    batch = f"final batch of {case.final_batch} over {counted(case.replicas, 'replica')}"
    if not case.final_batch or not case.replicas or not starves(case.final_batch, case.replicas):
        return unknown(case, f"{batch}: no replica is empty")
    losses = f"reported losses are {format_losses(case.losses)}"
    if case.weights.nonfinite:
        count = counted(len(case.weights.nonfinite), "variable")
        observed = f"NaN or infinity in {count} ({some(case.weights.nonfinite)}) after a {batch}; {losses}"
        brief = "a last batch that leaves a replica empty makes weights NaN"
        return finding(run.keras or case, observed, "finite weights", _REMEDY, brief=brief)
    if None in case.losses:
        observed = f"weights are finite after a {batch}, but {losses}"
        brief = "a last batch that leaves a replica empty makes losses NaN"
        return finding(run.keras or case, observed, "finite losses", _REMEDY, brief=brief)
    return evidence(case, f"weights stay finite after a {batch}; {losses}")
