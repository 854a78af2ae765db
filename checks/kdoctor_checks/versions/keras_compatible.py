"""Whether the Keras that the job will use trains rightly over several replicas."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from kdoctor.check import check
from kdoctor.facts import KerasChoice, Packages, Target
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._install import install, restore
from kdoctor_checks._versions import parse_version

_KERAS_3 = Version("3.0.dev0")
_FIRST_RIGHT = Version("3.10")
_DEFECTS = (
    (Version("3.5"), "gradients are not all-reduced: each replica trains weights of its own"),
    (Version("3.8"), "gradients are summed, not averaged: the learning rate is multiplied by the replicas"),
    (_FIRST_RIGHT, "the loss and the metrics that fit reports are wrong, NaN at scale"),
)
"""Defects of Keras 3 under MirroredStrategy, each with the first release without it, oldest first."""


@check("versions.keras-compatible", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def keras_compatible(keras: KerasChoice, packages: Packages, target: Target) -> Iterator[Outcome]:
    """The Keras that tf.keras will be is installed, runs on TensorFlow, and trains rightly over several replicas.

    Why: Keras 3.0 to 3.9 trains under MirroredStrategy without an error, and wrongly: up to 3.4 the replicas'
    gradients are not combined, from 3.5 to 3.7 they are summed instead of averaged, and up to 3.9 the reported loss
    and metrics are wrong. On another backend than TensorFlow a tf.distribute strategy does not apply at all, and
    with TF_USE_LEGACY_KERAS set but tf-keras absent, the first use of tf.keras fails.
    Remedy: install Keras 3.10 or newer; install tf-keras of TensorFlow's own minor release where
    TF_USE_LEGACY_KERAS is set; set KERAS_BACKEND=tensorflow.
    Sources:
        https://github.com/keras-team/keras/issues/19891
        https://github.com/keras-team/keras/pull/20609
        https://github.com/keras-team/keras/issues/21061
        https://keras.io/getting_started
    """
    yield _judge_release(keras, packages, target)
    if keras.package == "keras":
        yield _judge_backend(keras)


def _judge_release(keras: KerasChoice, packages: Packages, target: Target) -> Outcome:
    if keras.version is None:
        return _absent(keras, packages, target)
    version = parse_version(keras.version)
    if version is None:
        return Unjudged(subject=keras.package, reason=f"{keras.version!r} is no PEP 440 version")
    defect = next((defect for fixed, defect in _DEFECTS if version < fixed), None)
    if keras.package != "keras" or version < _KERAS_3 or defect is None:
        chosen = " (TF_USE_LEGACY_KERAS is set)" if keras.legacy else ""
        return Evidence(subject=keras.package, observed=f"{keras.package} {keras.version}{chosen}")
    return Finding(
        subject=keras.package,
        observed=f"keras {keras.version}: {defect}",
        expected="keras 3.10 or newer, or Keras 2",
        remedy=Remedy(
            summary="Install Keras 3.10 or newer; models keep their code.",
            action=Action.REINSTALL,
            commands=(install(target, packages, "keras>=3.10"),),
        ),
        rollback=restore(target, packages, keras.package),
    )


def _absent(keras: KerasChoice, packages: Packages, target: Target) -> Outcome:
    if packages.find(keras.package):
        return Unjudged(subject=keras.package, reason="it is installed, but its version was not read")
    asked = "TF_USE_LEGACY_KERAS is set, but tf-keras" if keras.legacy else keras.package
    tensorflow = packages.version("tensorflow") or ""
    minor = ".".join(tensorflow.split(".")[:2])
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
