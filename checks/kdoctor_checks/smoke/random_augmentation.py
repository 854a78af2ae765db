from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW
from kdoctor_checks.smoke._random_layers import judge_random_layers

_CASES = ("dropout-per-replica", "augmented-in-map")
_REMEDY = "Train with tf_keras, whose layers draw different numbers on each replica."


@check(
    "smoke.random-augmentation",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.features",
)
def random_augmentation(run: SmokeRun) -> Iterator[Outcome]:
    """The alternatives to Dropout and augmentation layers draw different numbers on each replica.

    Why: in Keras 3 all replicas draw the same numbers (smoke.random-layers, smoke.other-random-layers). A Dropout layer
    that adds the replica's index to its seed, and augmentation in Dataset.map, before a batch is split, must draw
    different ones. This is a warning because the gradients are correct, but vary more.
    Remedy: train with tf_keras.
    Source: https://keras.io/api/layers/preprocessing_layers/image_augmentation/
    Failure modes: keras3_equal_masks
    """
    yield from judge_random_layers(run, _CASES, _REMEDY, ("job.random-layers", "smoke.random-layers"))
