from collections.abc import Iterator
from dataclasses import replace

from packaging.version import Version

from kdoctor.check import check
from kdoctor.commands.packages import first_accepted, install, minor, narrowest, restore, tf_keras_for
from kdoctor.commands.shell import set_variable
from kdoctor.facts import KerasChoice, Packages, Target
from kdoctor.matrix.keras import BASELINE, HARMLESS
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import specifier
from kdoctor.model import Assumptions, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._versions import meets, parse_specifiers, parse_version

_LOSSES = "keras3_metrics_wrong_or_nan"
_BRIEFS = {
    "keras3_grads_not_reduced": "does not combine the gradients of the replicas",
    "keras3_lr_times_replicas": "sums gradients over the replicas instead of averaging them",
    _LOSSES: "reports wrong losses and metrics on several replicas",
}
"""Row of the matrix to what it says in a few words."""

_SAME_PACKAGE = ("versions.package-conflicts", "versions.other-conflicts", "versions.known-bad")
_TRAININGS = ("smoke.*", "job.*")
_REPORTED_LOSSES = ("smoke.*", "job.reported-loss")
"""What a release with correct weights explains. The trainings name this check only for what their Keras gets wrong."""


@check("versions.keras-compatible", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def keras_compatible(
    keras: KerasChoice, packages: Packages, target: Target, matrix: VersionMatrix, assumptions: Assumptions
) -> Iterator[Outcome]:
    """tf.keras uses the TensorFlow backend and trains correctly on several replicas.

    Why: a tf.distribute strategy needs Keras with the TensorFlow backend, and Keras 3.0 to 3.9 trains incorrectly under
    it, without an error. Up to 3.4, the gradients of the replicas are not combined. From 3.5 to 3.7, they are summed
    instead of averaged. Up to 3.9, the reported loss and metrics are wrong. If TF_USE_LEGACY_KERAS is set, the first
    use of tf.keras fails without tf-keras of TensorFlow's minor release.
    Remedy: install Keras 3.10 or later; with TF_USE_LEGACY_KERAS, install tf-keras of TensorFlow's minor release; set
    KERAS_BACKEND=tensorflow.
    Sources:
        https://github.com/keras-team/keras/issues/19891
        https://github.com/keras-team/keras/pull/20609
        https://github.com/keras-team/keras/issues/21061
        https://keras.io/getting_started
        https://github.com/keras-team/tf-keras
    Failure modes: keras3_grads_not_reduced, keras3_lr_times_replicas, keras3_metrics_wrong_or_nan
    """
    outcome = _judge_release(keras, packages, target, matrix)
    if isinstance(outcome, Finding):
        outcome = replace(outcome, explained_by=_other_than_agreed(keras, assumptions))
    yield outcome
    if keras.package == "keras":
        yield _judge_backend(keras)


def _other_than_agreed(keras: KerasChoice, assumptions: Assumptions) -> tuple[str, ...]:
    """The checks that install the release in the checklist, which is the better fix."""
    version = parse_version(keras.version)
    agreed = {
        "versions.packages-expected": assumptions.packages.get(keras.package),
        "versions.runtime-expected": assumptions.framework.get("keras"),
    }
    specifiers = {check_id: parse_specifiers(text) for check_id, text in agreed.items() if text}
    return tuple(check_id for check_id, item in specifiers.items() if item and not (version and meets(version, item)))


def _judge_release(keras: KerasChoice, packages: Packages, target: Target, matrix: VersionMatrix) -> Outcome:
    installed = packages.tensorflow
    tensorflow = minor(installed.version) if installed and installed.version else None
    is_legacy = keras.package == "tf-keras"
    legacy = tf_keras_for(tensorflow) if tensorflow else "tf-keras"
    if keras.version is None and packages.find(keras.package):
        return Unjudged(subject=keras.package, reason="installed, but its version was not read")
    if keras.version is None:
        summary = "Install tf-keras, or unset TF_USE_LEGACY_KERAS to use Keras 3." if keras.legacy else ""
        return _finding(
            keras,
            "not installed" + (", although TF_USE_LEGACY_KERAS is set" if keras.legacy else ""),
            f"{keras.package} installed",
            summary or f"Install {keras.package}.",
            legacy if is_legacy else keras.package,
            (packages, target),
            (*_SAME_PACKAGE, *_TRAININGS),
        )
    version = parse_version(keras.version)
    if version is None:
        return Unjudged(subject=keras.package, reason=f"version {keras.version!r} is not valid (PEP 440)")
    if is_legacy and tensorflow and minor(keras.version) != tensorflow:
        return _finding(
            keras,
            f"does not work with TensorFlow {tensorflow}",
            f"tf-keras {tensorflow}; each release works with one TensorFlow",
            f"Install tf-keras {tensorflow}.",
            legacy,
            (packages, target),
            (*_SAME_PACKAGE, *_TRAININGS),
        )
    # Entries that no release fixes (an empty replica, an uneven first batch) depend on the job. Trainings judge them.
    rows = [row for row in matrix.known_bad if set(row.when) == {"keras"} and row.effect == "wrong-results"]
    bad = [row for row in rows if row.ended_by and specifier(row.when["keras"]).contains(version, prereleases=True)]
    if keras.package != "keras" or not bad:
        return _judge_baseline(keras, packages, target, matrix)
    ends = narrowest(specifier(",".join(row.ended_by["keras"] for row in bad)))
    wanted = first_accepted(target, packages, f"keras{ends}", "keras<3")
    is_older = wanted == first_accepted(target, packages, "keras<3")
    change = "It is the Keras of this TensorFlow." if is_older else "Models need no change."
    only_losses = {row.id for row in bad} == {_LOSSES}
    finding = _finding(
        keras,
        f"gives wrong results on several replicas ({'; '.join(row.symptom for row in bad)})",
        f"{wanted}, or Keras 2",
        f"Install {wanted}. {change}",
        wanted,
        (packages, target),
        (*_SAME_PACKAGE, *(_REPORTED_LOSSES if only_losses else _TRAININGS)),
    )
    return replace(finding, brief=_BRIEFS.get(bad[0].id, "gives wrong results on several replicas"))


def _judge_baseline(keras: KerasChoice, packages: Packages, target: Target, matrix: VersionMatrix) -> Outcome:
    """The outcome for a release without a known-bad row: what was measured with it."""
    package = keras.package.replace("-", "_")
    baseline = matrix.keras_feature(BASELINE, package, keras.version or "")
    if baseline.result is not None and baseline.result not in HARMLESS:
        # Development releases were measured, too, but a package index does not have them under this name.
        measured = (Version(row.release) for row in matrix.keras_releases if row.package == package)
        right = [
            release
            for release in measured
            if not release.is_prerelease and matrix.keras_feature(BASELINE, package, str(release)).result == "right"
        ]
        wanted = f"{keras.package}=={max(right)}" if right else keras.package
        finding = _finding(
            keras,
            f"does not train as one device on several replicas: {baseline.observed} ({baseline.basis})",
            "a release that trains as one device",
            f"Install {wanted}. Models need no change.",
            wanted,
            (packages, target),
            (*_SAME_PACKAGE, *_TRAININGS),
        )
        return replace(finding, brief="does not train as one device on several replicas")
    chosen = " (TF_USE_LEGACY_KERAS is set)" if keras.legacy else ""
    name = "Keras" if keras.package == "keras" else keras.package
    brief = f"{name} {keras.version}"
    return Evidence(subject=keras.package, observed=f"version {keras.version}{chosen}", brief=brief)


def _finding(
    keras: KerasChoice,
    observed: str,
    expected: str,
    summary: str,
    wanted: str,
    installed: tuple[Packages, Target],
    explains: tuple[str, ...],
) -> Finding:
    packages, target = installed
    return Finding(
        subject=f"{keras.package} {keras.version}" if keras.version else keras.package,
        observed=observed,
        expected=expected,
        explains=explains,
        remedy=Remedy.reinstall(summary, install(target, packages, wanted)),
        rollback=restore(target, packages, keras.package),
    )


def _judge_backend(keras: KerasChoice) -> Outcome:
    if keras.backend == "tensorflow":
        return Evidence(subject="Keras backend", observed=f"tensorflow ({keras.backend_from})")
    recorded = keras.backend if keras.backend_from == "KERAS_BACKEND" else None
    return Finding(
        subject="Keras backend",
        observed=f"{keras.backend} ({keras.backend_from})",
        brief=f"{keras.backend}, and tf.distribute strategies need tensorflow",
        explains=_TRAININGS,
        expected="tensorflow, the only backend that tf.distribute strategies support",
        remedy=Remedy.configure(
            "Set the backend in the job's environment. The variable overrides keras.json. For checklists of other "
            "backends, see `kdoctor list checklists`.",
            set_variable("KERAS_BACKEND", "tensorflow"),
        ),
        rollback=Rollback.to("restore the recorded KERAS_BACKEND", set_variable("KERAS_BACKEND", recorded)),
    )
