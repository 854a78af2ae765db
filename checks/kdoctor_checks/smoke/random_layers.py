from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, evidence, finding, judge_cases, unknown

_REMEDY = "Add replica_id_in_sync_group to the seed of the layer (docs/distributed-keras.md), or train with tf_keras."


@check(
    "smoke.random-layers",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.features",
)
def random_layers(run: SmokeRun) -> Iterator[Outcome]:
    """Dropout has a different mask on each replica.

    Why: equal masks leave a batch on R replicas with 1/R of the random masks that it has on one device. In Keras 3 the
    generator of a layer is a mirrored variable, so all replicas draw the same numbers; random augmentation layers do
    the same. The gradients are correct, but vary more, so this is a warning. Two masks of 64 elements are equal by
    chance once in 2**64 times. The case dropout-per-replica runs the alternative.
    Remedy: add the replica's index to the seed of the layer, or train with tf_keras.
    Source: https://keras.io/api/random/seed_generator/
    Failure modes: keras3_equal_masks
    """

    def judge(case: SmokeCase) -> Outcome:
        masks, equal = case.measures.get("masks"), case.measures.get("equal_masks")
        if not masks or equal is None:
            return unknown(case, "its masks were not compared")
        observed = f"equal masks on {counted(case.replicas, 'replica')} in {equal:.0f} of {masks:.0f} steps"
        if not equal:
            return evidence(case, observed)
        return finding(
            case,
            f"{observed} ({run.keras or 'Keras unknown'})",
            "a different mask on each replica",
            _REMEDY,
            brief="draw the same numbers on every replica",
            explained_by=("job.random-layers",),
        )

    yield from judge_cases(run, ("dropout", "dropout-per-replica"), judge)
