from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import keras
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.engine.report import Result
from kdoctor.matrix.keras import FeatureResult
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, GpuAssumption, Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.keras_features import keras_features

MATRIX = load_matrix(environ={})
CLIPNORM = "silent-features/clipnorm"


def judged(matrix: VersionMatrix = MATRIX, **choice: Any) -> Result:
    return compute_check(keras_features, keras(**choice), matrix=matrix)


def measured(*results: tuple[str, str, FeatureResult]) -> VersionMatrix:
    """A matrix in which only clipnorm was measured, with these packages and releases."""
    row, release = MATRIX.keras_features[0], MATRIX.keras_releases[0]
    rows = [
        row.model_copy(update={"feature": CLIPNORM, "package": package, "releases": (version,), "result": result})
        for package, version, result in results
    ]
    releases = [release.model_copy(update={"package": package, "release": version}) for package, version, _ in results]
    return replace(MATRIX, keras_features=tuple(rows), keras_releases=tuple(releases))


@pytest.mark.parametrize("version", ["3.10.0", "3.15.1"])
def test_releases_that_clip_incorrectly_warn_everybody(version: str) -> None:
    result = judged(version=version)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    (item,) = result.findings
    assert item.finding.subject == f"keras {version}"
    assert "clipnorm" in item.finding.headline
    assert all(name in item.finding.observed for name in ("dropout", "clipvalue", "raises an error with"))
    assert "starved tail" not in item.finding.observed  # smoke.starved-replica trains it
    assert "masked loss" not in item.finding.observed  # wrong with every release


def test_finding_names_the_package_that_trains_all_of_them_correctly() -> None:
    right = measured(("keras", "3.15.1", "wrong"), ("tf_keras", "2.21.0", "right"))
    assert "train with tf_keras" in judged(right, version="3.15.1").findings[0].finding.remedy.summary
    both = measured(("keras", "3.10.0", "right"), ("keras", "3.15.1", "wrong"), ("tf_keras", "2.21.0", "wrong"))
    found = judged(both, package="tf-keras", version="2.21.0").findings[0].finding
    assert "train with" not in found.remedy.summary


def test_package_with_more_defects_is_not_the_alternative() -> None:
    for result in (judged(package="tf-keras", version=row.release) for row in MATRIX.keras_releases):
        assert all("train with" not in item.finding.remedy.summary for item in result.findings)


@pytest.mark.parametrize(("result", "offered"), [("wrong", False), ("raises", True), ("right", True)])
def test_alternative_gets_fewer_features_wrong(result: FeatureResult, *, offered: bool) -> None:
    matrix = measured(("keras", "3.15.1", "wrong"), ("tf_keras", "2.21.0", "right"))
    other = next(row for row in MATRIX.keras_features if row.feature != CLIPNORM)
    more = other.model_copy(update={"package": "tf_keras", "releases": ("2.21.0",), "result": result})
    matrix = replace(matrix, keras_features=(*matrix.keras_features, more))
    summary = judged(matrix, version="3.15.1").findings[0].finding.remedy.summary
    assert ("train with tf_keras" in summary) is offered


RIGHT_AGAIN = measured(("keras", "3.14.0", "wrong"), ("keras", "3.15.1", "right"))
ONE_GPU, NO_GPU = (Assumptions(gpus=GpuAssumption(count=count)) for count in (1, 0))

test_keras_features = table(
    "versions.keras-features",
    Severity.WARNING,
    passes(keras(version="3.15.1"), RIGHT_AGAIN),
    fails(keras(version="3.14.0"), RIGHT_AGAIN),
    unknown(keras(version="3.16.0"), RIGHT_AGAIN),
    passes(  # a feature that raises an error is evidence
        keras(version="3.15.1"),
        measured(("keras", "3.14.0", "wrong"), ("keras", "3.15.0", "right"), ("keras", "3.15.1", "raises")),
        "clipnorm",
    ),
    unknown(keras(version=None)),
    unknown(keras(version="not a version")),
    skips(keras(version="3.15.1"), ONE_GPU),
    fails(keras(version="3.15.1"), NO_GPU),
    fails(keras(version="3.15.1"), Assumptions(gpus=GpuAssumption(at_least=1))),
    unknown(
        keras(version="3.15.1"),
        measured(("tf_keras", "2.20.0", "wrong"), ("tf_keras", "2.21.0", "right")),
        "no release of keras was measured",
    ),
    unknown(
        keras(version="3.15.1"),
        measured(("keras", "3.14.0", "wrong"), ("keras", "3.15.0", "right")),
        "keras 3.15.1 was not measured; the newest measured release is 3.15.0",
    ),
    given=(MATRIX,),
)


def test_short_form_agrees_in_number() -> None:
    one = measured(("keras", "3.14.0", "right"), ("keras", "3.15.1", "wrong"))
    assert " is wrong on several replicas" in judged(one, version="3.15.1").findings[0].finding.headline
    features = dict.fromkeys(row.feature for row in MATRIX.keras_features)
    second = one.keras_features[0].model_copy(update={"feature": next(name for name in features if name != CLIPNORM)})
    third = second.model_copy(update={"releases": ("3.15.1",), "result": "wrong"})
    two = replace(one, keras_features=(*one.keras_features, second, third))
    assert " are wrong on several replicas" in judged(two, version="3.15.1").findings[0].finding.headline
