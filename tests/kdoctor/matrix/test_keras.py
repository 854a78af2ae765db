"""What the measured releases of Keras say about a release and a feature."""

from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.matrix.keras import FeatureResult, KerasFeature, defects, known_feature, measured_result
from kdoctor.matrix.load import MatrixError, load_matrix

HEAD = 'schema: kdoctor/version-matrix/v1\nextends: shipped\nupdated: "2026-12-01"\nplatform: linux-x86_64\n'


def row(result: FeatureResult, *releases: str, feature: str = "ours/clip", package: str = "keras") -> KerasFeature:
    values = {"feature": feature, "package": package, "releases": releases, "result": result}
    return KerasFeature.model_validate({**values, "observed": f"as in {releases[-1]}", "source": "measured"})


ROWS = [
    *(row("right", "3.0.5"), row("wrong", "3.2.1", "3.6.0"), row("right", "3.10.0", "3.15.1")),
    row("raises", "2.21.0", package="tf_keras"),
]


@cases(
    ("3.2.1", "wrong", True),
    ("3.4.0", "wrong", False),  # between two measured releases with the same result
    ("3.12.0", "right", False),
    ("3.8.0", None, False),  # between two measured releases with different results
    ("3.1.0", None, False),
    ("3.0.1", None, False),  # older than every measured release
    ("3.16.0.dev1", None, False),  # newer
)
def test_release_between_measured_ones_has_their_common_result(
    version: str, result: str | None, *, measured: bool
) -> None:
    known = known_feature(ROWS, "ours/clip", "keras", version)
    assert (known.result, known.measured) == (result, measured)


@cases(("3.4.0", ["3.2.1", "3.6.0"]), ("3.8.0", ["3.6.0", "3.10.0"]), ("3.0.1", ["3.0.5"]), ("3.16.0", ["3.15.1"]))
def test_basis_names_the_neighbours_of_a_release_that_was_not_measured(version: str, named: list[str]) -> None:
    basis = known_feature(ROWS, "ours/clip", "keras", version).basis
    assert [release for release in ("3.0.5", "3.2.1", "3.6.0", "3.10.0", "3.15.1") if f"{release}" in basis] == named
    assert f"keras {version} was not measured" in basis


def test_packages_and_features_are_kept_apart() -> None:
    assert known_feature(ROWS, "ours/clip", "tf_keras", "2.21.0").result == "raises"
    assert known_feature(ROWS, "ours/other", "keras", "3.6.0").result is None
    assert measured_result(ROWS, "ours/clip", "keras", "3.4.0") is None
    assert measured_result(ROWS, "ours/clip", "keras", "3.6.0") == "wrong"


def test_defects_are_what_is_wrong_or_ends_the_job() -> None:
    rows = [*ROWS, row("unsupported", "3.2.1", feature="ours/new"), row("hangs", "3.2.1", feature="ours/slow")]
    assert [item.feature for item in defects(rows, "keras", "3.2.1")] == ["ours/clip", "ours/slow"]
    assert list(defects(rows, "keras", "3.15.1")) == []
    assert list(defects(rows, "keras", "not a version")) == []


FEATURE = "features:\n- {feature: ours/clip, title: our clipping, checks: [smoke.clipping]}\n"
RELEASE = "{package: keras, release: '3.1', tensorflow: '2.16', python: '3.11', measured: soon, source: a lab}"


def result(releases: str, result: str = "wrong", feature: str = "ours/clip", observed: str = "x") -> str:
    """A row of ``keras_features``."""
    first = f"- {{feature: {feature}, package: keras, releases: [{releases}], "
    return f"{first}result: {result}, observed: {observed}, source: a lab}}\n"


def results(*rows: str) -> str:
    return f"{FEATURE}keras_features:\n{''.join(rows)}"


def loaded(folder: Path, text: str) -> str:
    file = folder / "own.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    return str(file)


@cases(
    (FEATURE.replace("title: our clipping, ", ""), "6:3", "title"),
    (results(result("'3.1.0'", feature="ours/clup")), "8:", "did you mean 'ours/clip'"),
    (results(result("three")), "8:", "is not a version"),
    (results(result("'3.1.0'", "odd")), "8:", "result"),
    (results(result("")), "8:", "names no release"),
    (results(result("'3.1.0', '3.1.0'")), "8:", "names a release twice"),
    (results(result("'3.1.0', '3.2.0'"), result("'3.2.0'", "right")), "9:", "a result for 'ours/clip' (line 8)"),
    (f"keras_releases:\n- {RELEASE}\n", "6:", "is not a date"),
)
def test_problem_names_its_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    with pytest.raises(MatrixError) as caught:
        load_matrix(loaded(tmp_path, text), {})
    assert f"own.yaml:{place}" in str(caught.value)
    assert message in str(caught.value)
