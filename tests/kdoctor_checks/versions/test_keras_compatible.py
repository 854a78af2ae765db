from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import PYTHON, keras, package, packages, target
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.model import Status
from kdoctor_checks.versions.keras_compatible import keras_compatible


def judged(**choice: Any) -> Result:
    chosen = keras(**choice)
    installed = [package("tensorflow", "2.18.1")]
    if chosen.version:
        installed.append(package(chosen.package, chosen.version))
    return compute_check(keras_compatible, chosen, packages(*installed), target())


@pytest.mark.parametrize(
    ("version", "status", "defect"),
    [  # the table in which these releases were measured: gradients not reduced, summed, metrics wrong, right
        ("3.0.0", Status.FAIL, "are not summed"),
        ("3.2.1", Status.FAIL, "are not summed"),
        ("3.4.1", Status.FAIL, "are not summed"),
        ("3.5.0", Status.FAIL, "summed and not averaged"),
        ("3.7.0", Status.FAIL, "summed and not averaged"),
        ("3.8.0", Status.FAIL, "metrics"),
        ("3.9.2", Status.FAIL, "metrics"),
        ("3.10.0", Status.PASS, None),
        ("3.15.1", Status.PASS, None),
        ("2.15.0", Status.PASS, None),
        ("not a version", Status.UNKNOWN, None),
    ],
)
def test_releases_that_train_wrongly_over_replicas_fail(version: str, status: Status, defect: str | None) -> None:
    result = judged(version=version)
    assert result.status is status
    if defect:
        finding = result.findings[0].finding
        assert defect in finding.observed
        assert finding.remedy.commands == (f"{PYTHON} -m pip install 'keras>=3.10'",)
        assert finding.rollback.commands == (f"{PYTHON} -m pip install keras=={version}",)


def test_legacy_keras_must_be_installed() -> None:
    result = judged(package="tf-keras", version=None, legacy=True)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed == "TF_USE_LEGACY_KERAS is set, but tf-keras is not installed"
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tf-keras~=2.18.0'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip uninstall -y tf-keras",)
    assert judged(package="tf-keras", version="2.18.0", legacy=True).status is Status.PASS


@pytest.mark.parametrize(("version", "status"), [("2.18.0", Status.PASS), ("2.19.0", Status.FAIL)])
def test_legacy_keras_must_be_of_tensorflows_minor_release(version: str, status: Status) -> None:
    result = judged(package="tf-keras", version=version, legacy=True)
    assert result.status is status
    if result.findings:
        finding = result.findings[0].finding
        assert finding.observed == "tf-keras 2.19.0 beside TensorFlow 2.18"
        assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tf-keras~=2.18.0'",)
        assert finding.rollback.commands == (f"{PYTHON} -m pip install tf-keras==2.19.0",)


def test_legacy_keras_does_not_care_for_the_backend() -> None:
    assert judged(package="tf-keras", version="2.18.0", legacy=True, backend="jax").status is Status.PASS


@pytest.mark.parametrize(
    ("origin", "back"), [("KERAS_BACKEND", "export KERAS_BACKEND=jax"), ("keras.json", "unset KERAS_BACKEND")]
)
def test_another_backend_than_tensorflow_fails(origin: str, back: str) -> None:
    result = judged(backend="jax", backend_from=origin)
    assert result.status is Status.FAIL
    assert result.findings[0].finding.observed == f"jax ({origin})"
    assert result.findings[0].finding.rollback.commands == (back,)


def test_an_installed_keras_without_a_version_is_unknown() -> None:
    facts = (keras(version=None), packages(package("keras", None)), target())
    assert compute_check(keras_compatible, *facts).status is Status.UNKNOWN


def test_missing_keras_facts_are_unknown() -> None:
    assert compute_check(keras_compatible, packages(), target()).status is Status.UNKNOWN
