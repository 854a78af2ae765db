from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW
from kdoctor_checks.smoke._random_layers import judge_random_layers

_CASES = (
    "gaussian-noise",
    "random-translation",
    "random-flip",
    "random-rotation",
    "dropout-per-replica",
    "augmented-in-map",
)
_REMEDY = (
    "Augment in Dataset.map, before batches are split, or train with tf_keras. For noise, add replica_id_in_sync_group "
    "to the seed."
)


@check(
    "smoke.random-augmentation",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.features",
)
def random_augmentation(run: SmokeRun) -> Iterator[Outcome]:
    """Noise and random preprocessing layers draw different numbers on each replica.

    Why: as for smoke.random-layers, which has Dropout. The cases dropout-per-replica and augmented-in-map run the
    alternatives. Two replicas flip all 64 images alike by chance once in 2**64 times.
    Remedy: augment in Dataset.map, or add the replica's index to the seed of the layer, or train with tf_keras.
    Source: https://keras.io/api/layers/preprocessing_layers/image_augmentation/
    Failure modes: keras3_equal_masks
    """
    yield from judge_random_layers(run, _CASES, _REMEDY, ("job.random-layers", "smoke.random-layers"))
