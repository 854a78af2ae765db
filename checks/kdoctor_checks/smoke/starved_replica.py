"""Whether a final batch that leaves a replica empty ruins the weights here."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.smoke._cases import MEASURE_ONLY, how_it_ended, missing, name_of, no_real_spread, show

_CASE = "starved-tail"


@check(
    "smoke.starved-replica",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.uneven-final-batch",
)
def starved_replica(run: SmokeRun) -> Iterator[Outcome]:
    """A final batch that leaves a replica empty does no harm to a model with BatchNormalization.

    Why: TensorFlow cuts a batch of n examples over R replicas in chunks of ceil(n / R); replica r gets nothing when
    r * ceil(n / R) >= n. With Keras 3 the moments of its empty share are NaN, and all replicas' weights become NaN
    with no error. The loss of that epoch still prints finite, so it shows an epoch later, or in production. A job
    whose data never leave such a tail, or that guards against it, may start: hence a warning.
    Remedy: drop the remainder, synchronise the normalisation, or repeat the data and count the steps.
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch
        https://keras.io/api/layers/normalization_layers/batch_normalization/
    Failure modes: keras3_bn_empty_replica
    """
    case = run.case(_CASE)
    if case is None:
        yield missing(run, _CASE)
    elif case.outcome != "trained":
        yield _finding(case, how_it_ended(case))
    else:
        yield no_real_spread(run, case) or _judge(case)


def _judge(case: SmokeCase) -> Outcome:
    if case.weights is None or not case.losses:
        return Unjudged(subject=name_of(case), reason="its weights or its losses were not read")
    if not _starves(case):
        return Unjudged(
            subject=name_of(case),
            reason=f"a final batch of {case.final_batch} over {case.replicas} replicas leaves none of them empty",
        )
    batch = f"final batch of {case.final_batch} over {case.replicas} replicas"
    losses = f"losses that fit printed: {show(case.losses)}"
    if case.weights.nonfinite:
        count = len(case.weights.nonfinite)
        return _finding(
            case, f"{batch}: {count} variables hold NaN or infinity ({some(case.weights.nonfinite)}); {losses}"
        )
    if None in case.losses:
        return _finding(case, f"{batch}: the weights are finite, but {losses}")
    return Evidence(subject=name_of(case), observed=f"{batch}: the weights stay finite; {losses}")


def _starves(case: SmokeCase) -> bool:
    """Whether the last replica gets nothing of the final batch."""
    if not case.final_batch or not case.replicas:
        return False
    share = -(-case.final_batch // case.replicas)
    return (case.replicas - 1) * share >= case.final_batch


def _finding(case: SmokeCase, observed: str) -> Finding:
    return Finding(
        subject=name_of(case),
        observed=observed,
        expected="finite weights",
        remedy=Remedy(
            summary="Guard the job's data or model in one of these ways: dataset.batch(n, drop_remainder=True); "
            "BatchNormalization(synchronized=True); or dataset.repeat() with fit(steps_per_epoch=...). "
            "The checks of the guarded form are in smoke.uneven-final-batch.",
            action=Action.CHANGE_CODE,
        ),
        rollback=MEASURE_ONLY,
    )
