from collections.abc import Iterator, Sequence

from packaging.version import Version

from kdoctor.check import check
from kdoctor.facts import KerasChoice
from kdoctor.matrix.keras import KnownFeature, defects, features_of
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.truth import describe, titles
from kdoctor.model import Assumptions, Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._versions import first_short, parse_version

_TRAINED = ("uneven-final-batch/starved-tail",)
"""Features that a training of the shipped checklists judges on the machine itself (smoke.starved-replica)."""


@check("versions.keras-features", severity=Severity.WARNING, requires=["versions.keras-compatible"])
def keras_features(keras: KerasChoice, matrix: VersionMatrix, assumptions: Assumptions) -> Iterator[Outcome]:
    """No feature of jobs is known to train incorrectly without an error.

    Why: on several replicas, Keras 3 clips the gradient of each replica instead of their sum, and random layers draw
    the same numbers on every replica. Some losses and predictions are wrong, too. Nothing raises an error. The
    version matrix has what was measured with each release (kdoctor matrix). This is a warning because only jobs
    that use such a feature are affected. With --model, job.clipping is an error for a job that clips. A feature that
    every release trains incorrectly, such as a masked loss, is not reported.
    Remedy: clip in a custom train_step after an all_reduce of the gradients, add the replica to the seed of random
    layers, return one loss per example, and call predict instead of predict_on_batch. Or train with tf_keras.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    Failure modes: keras3_clips_each_replica, keras3_equal_masks, keras3_loss_scale_overflow, keras3_scalar_loss,
        keras3_predict_on_batch, keras3_train_step_loss
    """
    subject = f"{keras.package} {keras.version or '(version unknown)'}"
    if assumptions.gpus and assumptions.gpus.count == 1:
        yield NotApplicable(reason="the checklist expects one GPU, so there is only one replica")
        return
    if keras.version is None or parse_version(keras.version) is None:
        yield Unjudged(subject=subject, reason="its version is not valid")
        return
    package = keras.package.replace("-", "_")
    known = [matrix.keras_feature(name, package, keras.version) for name in features_of(matrix.keras_features, package)]
    loud = describe(matrix, [item for item in known if item.result != "wrong"])
    avoidable = _avoidable(matrix)
    known = [item for item in known if item.feature in avoidable]
    wrong = [item for item in known if item.result == "wrong"]
    unmeasured = [item for item in known if item.result is None]
    if wrong:
        yield _finding(subject, package, wrong, loud, matrix)
    elif unmeasured or not known:
        basis = unmeasured[0].basis if unmeasured else f"no release of {package} was measured"
        yield Unjudged(subject=subject, reason=basis, explained_by=("versions.in-matrix",))
    else:
        silent = f"none of {counted(len(known), 'feature')} trains incorrectly without an error"
        yield Evidence(subject=subject, observed=f"{'; '.join(filter(None, (silent, loud)))} ({known[0].basis})")


def _avoidable(matrix: VersionMatrix) -> set[str]:
    """The features that some measured release trains correctly, and another one incorrectly without an error."""
    results: dict[str, set[str]] = {}
    for row in matrix.keras_features:
        results.setdefault(row.feature, set()).add(row.result)
    return {name for name, found in results.items() if {"right", "wrong"} <= found and name not in _TRAINED}


def _finding(subject: str, package: str, wrong: Sequence[KnownFeature], loud: str, matrix: VersionMatrix) -> Finding:
    names = titles(matrix, [item.feature for item in wrong])
    alternative = _alternative(package, wrong, matrix)
    verb = "are" if len(names) > 1 else "is"
    return Finding(
        subject=subject,
        observed=f"{'; '.join(filter(None, (describe(matrix, wrong), loud)))} ({wrong[0].basis})",
        brief=first_short(
            f"{some(names, 2)} {verb} wrong on several replicas", "some features of jobs are wrong on several replicas"
        ),
        expected="no feature that trains incorrectly without an error",
        remedy=Remedy.change_code(
            f"Before a job uses such a feature, replace it{f', or train with {alternative}' if alternative else ''}.",
            look=(f"kdoctor explain {subject}",),
        ),
        rollback=Rollback.nothing("not needed (only the job's code changes)"),
    )


def _alternative(package: str, wrong: Sequence[KnownFeature], matrix: VersionMatrix) -> str | None:
    """The other package, if its newest measured release is right with all of these, and wrong with fewer others."""
    others = [row for row in matrix.keras_releases if row.package != package]
    if not others:
        return None
    newest = max(others, key=lambda row: Version(row.release))
    results = {matrix.keras_feature(item.feature, newest.package, newest.release).result for item in wrong}
    more = [item for item in defects(matrix.keras_features, newest.package, newest.release) if item.result == "wrong"]
    return newest.package if results == {"right"} and len(more) < len(wrong) else None
