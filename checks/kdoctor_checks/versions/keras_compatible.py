"""Whether the Keras that the job will use trains rightly over several replicas."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import KerasChoice, Packages, Target
from kdoctor.matrix.model import VersionMatrix, specifier
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._versions import parse_version

_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-macos", "tensorflow-intel")


@check("versions.keras-compatible", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def keras_compatible(
    keras: KerasChoice, packages: Packages, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The Keras that tf.keras will be is installed, runs on TensorFlow, and trains rightly over several replicas.

    Why: Keras 3.0 to 3.9 trains under MirroredStrategy without an error, and wrongly: up to 3.4 the replicas'
    gradients are not combined, from 3.5 to 3.7 they are summed instead of averaged, and up to 3.9 the reported loss
    and metrics are wrong. On another backend than TensorFlow a tf.distribute strategy does not apply at all, and
    with TF_USE_LEGACY_KERAS set but tf-keras absent, or of another minor release than TensorFlow, the first use of
    tf.keras fails.
    Remedy: install Keras 3.10 or newer; install tf-keras of TensorFlow's own minor release where
    TF_USE_LEGACY_KERAS is set; set KERAS_BACKEND=tensorflow.
    Sources:
        https://github.com/keras-team/keras/issues/19891
        https://github.com/keras-team/keras/pull/20609
        https://github.com/keras-team/keras/issues/21061
        https://keras.io/getting_started
        https://github.com/keras-team/tf-keras
    Failure modes: keras3_grads_not_reduced, keras3_lr_times_replicas, keras3_metrics_wrong_or_nan
    """
    yield _judge_release(keras, packages, target, matrix)
    if keras.package == "keras":
        yield _judge_backend(keras)


def _judge_release(keras: KerasChoice, packages: Packages, target: Target, matrix: VersionMatrix) -> Outcome:
    if keras.version is None:
        return _absent(keras, packages, target)
    version = parse_version(keras.version)
    if version is None:
        return Unjudged(subject=keras.package, reason=f"{keras.version!r} is no PEP 440 version")
    if keras.package == "tf-keras" and (wanted := _minor_of(packages)) and _minor(keras.version) != wanted:
        return _other_minor(keras, wanted, packages, target)
    # Rows that no release ends (an empty replica, an uneven first batch) depend on the job; trainings show them.
    rows = [row for row in matrix.known_bad if set(row.when) == {"keras"} and row.effect == "wrong-results"]
    bad = [row for row in rows if row.ended_by and specifier(row.when["keras"]).contains(version, prereleases=True)]
    if keras.package != "keras" or not bad:
        chosen = " (TF_USE_LEGACY_KERAS is set)" if keras.legacy else ""
        return Evidence(subject=keras.package, observed=f"{keras.package} {keras.version}{chosen}")
    wanted = f"keras{bad[-1].ended_by['keras']}"
    return Finding(
        subject=keras.package,
        observed=f"keras {keras.version}: {'; '.join(row.symptom for row in bad)}",
        expected=f"{wanted}, or Keras 2",
        remedy=Remedy(
            summary=f"Install {wanted}; models keep their code.",
            action=Action.REINSTALL,
            commands=(install(target, packages, wanted),),
        ),
        rollback=restore(target, packages, keras.package),
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _minor_of(packages: Packages) -> str | None:
    """TensorFlow's minor release, ``2.19``; None where no distribution of a known name brought it."""
    found = next((found for name in _TENSORFLOWS if (found := packages.version(name))), None)
    return _minor(found) if found else None


def _other_minor(keras: KerasChoice, minor: str, packages: Packages, target: Target) -> Finding:
    return Finding(
        subject=keras.package,
        observed=f"tf-keras {keras.version} beside TensorFlow {minor}",
        expected=f"tf-keras {minor}: each of its releases works with one TensorFlow",
        remedy=Remedy(
            summary="Install the tf-keras of TensorFlow's own minor release.",
            action=Action.REINSTALL,
            commands=(install(target, packages, f"tf-keras~={minor}.0"),),
        ),
        rollback=restore(target, packages, keras.package),
    )


def _absent(keras: KerasChoice, packages: Packages, target: Target) -> Outcome:
    if packages.find(keras.package):
        return Unjudged(subject=keras.package, reason="it is installed, but its version was not read")
    asked = "TF_USE_LEGACY_KERAS is set, but tf-keras" if keras.legacy else keras.package
    minor = _minor_of(packages)
    # A tf-keras release works with the TensorFlow of the same minor release only.
    wanted = f"tf-keras~={minor}.0" if keras.package == "tf-keras" and minor else keras.package
    commands = (install(target, packages, wanted),)
    return Finding(
        subject=keras.package,
        observed=f"{asked} is not installed",
        expected=f"{keras.package} installed",
        remedy=Remedy(
            summary="Install tf-keras, or unset TF_USE_LEGACY_KERAS to use Keras 3."
            if keras.legacy
            else f"Install {keras.package}.",
            action=Action.REINSTALL,
            commands=commands,
        ),
        rollback=restore(target, packages, keras.package),
    )


def _judge_backend(keras: KerasChoice) -> Outcome:
    if keras.backend == "tensorflow":
        return Evidence(subject="Keras backend", observed=f"tensorflow ({keras.backend_from})")
    if keras.backend_from == "KERAS_BACKEND":
        rollback = Rollback.to(f"KERAS_BACKEND={keras.backend}", f"export KERAS_BACKEND={keras.backend}")
    else:
        rollback = Rollback.to("no KERAS_BACKEND, as recorded", "unset KERAS_BACKEND")
    return Finding(
        subject="Keras backend",
        observed=f"{keras.backend} ({keras.backend_from})",
        expected="tensorflow: tf.distribute strategies work with no other backend",
        remedy=Remedy(
            summary="Set the backend in the job's environment; the variable goes before keras.json.",
            action=Action.CONFIGURE,
            commands=("export KERAS_BACKEND=tensorflow",),
        ),
        rollback=rollback,
    )
