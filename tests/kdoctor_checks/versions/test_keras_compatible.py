from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

import pytest

from helpers.facts import PYTHON, keras, package, packages, target
from kdoctor.engine.report import Result
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.keras_compatible import keras_compatible


def judged(**choice: Any) -> Result:
    chosen = keras(**choice)
    installed = [package("tensorflow", "2.18.1")]
    if chosen.version:
        installed.append(package(chosen.package, chosen.version))
    return compute_check(keras_compatible, chosen, packages(*installed), target())


@pytest.mark.parametrize(
    ("version", "status", "defect"),
    [  # as measured: gradients not reduced, gradients summed, metrics wrong, correct
        ("3.0.0", Status.FAIL, "are not summed"),
        ("3.2.1", Status.FAIL, "are not summed"),
        ("3.4.1", Status.FAIL, "are not summed"),
        ("3.5.0", Status.FAIL, "summed instead of averaged"),
        ("3.7.0", Status.FAIL, "summed instead of averaged"),
        ("3.8.0", Status.FAIL, "metrics"),
        ("3.9.2", Status.FAIL, "metrics"),
        ("3.10.0", Status.PASS, None),
        ("3.15.1", Status.PASS, None),
        ("2.15.0", Status.PASS, None),
        ("not a version", Status.UNKNOWN, None),
    ],
)
def test_releases_that_train_incorrectly_on_replicas_fail(version: str, status: Status, defect: str | None) -> None:
    result = judged(version=version)
    assert result.status is status
    if defect:
        finding = result.findings[0].finding
        assert defect in finding.observed
        assert finding.remedy.commands == (f"{PYTHON} -m pip install 'keras>=3.10'",)
        assert finding.rollback.commands == (f"{PYTHON} -m pip install keras=={version}",)


def test_missing_legacy_keras_fails() -> None:
    result = judged(package="tf-keras", version=None, legacy=True)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert (finding.subject, "TF_USE_LEGACY_KERAS" in finding.observed) == ("tf-keras", True)
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tf-keras~=2.18.0'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip uninstall -y tf-keras",)
    assert judged(package="tf-keras", version="2.18.0", legacy=True).status is Status.PASS


@pytest.mark.parametrize(("version", "status"), [("2.18.0", Status.PASS), ("2.19.0", Status.FAIL)])
def test_legacy_keras_needs_the_minor_release_of_tensorflow(version: str, status: Status) -> None:
    result = judged(package="tf-keras", version=version, legacy=True)
    assert result.status is status
    if result.findings:
        finding = result.findings[0].finding
        assert finding.subject == "tf-keras 2.19.0"
        assert re.findall(r"2\.[\d.]+", finding.observed) == ["2.18"]
        assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tf-keras~=2.18.0'",)
        assert finding.rollback.commands == (f"{PYTHON} -m pip install tf-keras==2.19.0",)


def test_legacy_keras_ignores_the_backend() -> None:
    assert judged(package="tf-keras", version="2.18.0", legacy=True, backend="jax").status is Status.PASS


@pytest.mark.parametrize(
    ("origin", "back"), [("KERAS_BACKEND", "export KERAS_BACKEND=jax"), ("keras.json", "unset KERAS_BACKEND")]
)
def test_another_backend_than_tensorflow_fails(origin: str, back: str) -> None:
    result = judged(backend="jax", backend_from=origin)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed.startswith("jax")
    assert origin in finding.observed
    assert finding.rollback.commands == (back,)


def test_installed_keras_without_a_version_is_unknown() -> None:
    facts = (keras(version=None), packages(package("keras", None)), target())
    assert compute_check(keras_compatible, *facts).status is Status.UNKNOWN


def test_missing_keras_facts_are_unknown() -> None:
    assert compute_check(keras_compatible, packages(), target()).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("version", "weights"), [("3.4.1", True), ("3.6.0", True), ("3.7.0", True), ("3.8.0", False), ("3.9.2", False)]
)
def test_release_explains_what_it_gets_wrong(version: str, *, weights: bool) -> None:
    finding = judged(version=version).findings[0].finding
    assert finding.subject == f"keras {version}"
    explained = ("versions.package-conflicts", "smoke.baseline", "job.reported-loss")
    assert all(any(fnmatchcase(check_id, pattern) for pattern in finding.explains) for check_id in explained)
    assert any(fnmatchcase("job.equals-one-device", pattern) for pattern in finding.explains) is weights


def test_backend_explains_trainings_but_no_package() -> None:
    finding = judged(backend="jax", backend_from="KERAS_BACKEND").findings[0].finding
    assert not any(fnmatchcase("versions.package-conflicts", pattern) for pattern in finding.explains)
    assert any(fnmatchcase("smoke.baseline", pattern) for pattern in finding.explains)


@pytest.mark.parametrize(
    ("wanted", "explained_by"), [("==3.15.1", ("versions.packages-expected",)), (">=3.6", ()), ("", ())]
)
def test_release_in_the_checklist_is_the_better_fix(wanted: str, explained_by: tuple[str, ...]) -> None:
    facts = (keras(version="3.6.0"), packages(package("tensorflow", "2.18.1"), package("keras", "3.6.0")), target())
    assumptions = Assumptions(packages={"keras": wanted} if wanted else {})
    finding = compute_check(keras_compatible, *facts, assumptions=assumptions).findings[0].finding
    assert finding.explained_by == explained_by
