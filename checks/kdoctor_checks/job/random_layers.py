from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.job._keras_features import judge_feature
from kdoctor_checks.job._user_model import SCENARIO, job_of, model_of
from kdoctor_checks.smoke._judging import evidence, unknown

_SUBJECT = "random layers"
_REMEDY = "Add replica_id_in_sync_group to the seed of the layer (docs/distributed-keras.md), or train with tf_keras."


@check(
    "job.random-layers",
    severity=Severity.WARNING,
    requires=["job.model-and-data"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def random_layers(run: SmokeRun, matrix: VersionMatrix) -> Iterator[Outcome]:
    """Layers with random numbers draw different ones on each replica.

    Why: in Keras 3 the generator of a layer is a mirrored variable, so every replica draws the same Dropout mask and
    the same augmentation. A batch on R replicas has 1/R of the random masks that it has on one device. This is a
    warning because the gradients are still correct; they vary more. tf_keras draws different numbers.
    Remedy: add the replica's index to the seed of the layer, or train with tf_keras.
    Source: https://keras.io/api/random/seed_generator/
    Failure modes: keras3_equal_masks
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
        return
    training = job_of(run).training
    compared = training.stilled if training and training.deviation is not None else None
    layers = compared if model.random_layers is None else model.random_layers
    if layers is None:
        yield unknown(_SUBJECT, "the model is not built, so its layers are not known")
    elif not layers:
        yield evidence(_SUBJECT, "none")
    else:
        yield judge_feature(
            run,
            model,
            matrix,
            "random-layers",
            subject=_SUBJECT,
            used=some(layers),
            expected="different random numbers on each replica",
            remedy=_REMEDY,
            brief="draw the same numbers on every replica",
        )
