"""What distributed Keras does, as text."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from helpers.cases import cases
from helpers.matrices import SOURCE, release, small_matrix
from kdoctor.matrix.keras import KerasFeature, KerasRelease, KnownFeature, MeasuredFeature
from kdoctor.matrix.truth import KerasOnReplicas, features_of_checks, for_release, spans


def known(feature: str, result: str = "wrong") -> KnownFeature:
    return KnownFeature(feature=feature, result=result, observed="x", basis="measured")  # type: ignore[arg-type]


def row(feature: str, *releases: str, result: str = "wrong", package: str = "keras") -> KerasFeature:
    values = {"feature": feature, "package": package, "releases": releases, "result": result, "source": SOURCE}
    return KerasFeature.model_validate({**values, "observed": f"as in {releases[-1]}"})


def measured(version: str, package: str = "keras") -> KerasRelease:
    values = {"package": package, "release": version, "tensorflow": "2.0", "python": "3.11", "measured": "2026-01-01"}
    return KerasRelease.model_validate({**values, "source": SOURCE})


FEATURES = {
    name: MeasuredFeature(feature=name, title=title, checks=checks)
    for name, title, checks in (
        ("a/clip", "clipping", ("smoke.clip",)),
        ("b/clip", "clipping", ("smoke.clip", "smoke.other")),
        ("c/loss", "losses", ("smoke.loss",)),
        ("d/none", "nothing", ()),
    )
}
MATRIX = small_matrix(
    features=FEATURES,
    keras_releases=(measured("3.2.1"), measured("3.10.0"), measured("3.11.0rc0"), measured("2.0.0", "tf_keras")),
    keras_features=(
        row("a/clip", "3.2.1", "3.10.0", "3.11.0rc0"),
        row("c/loss", "3.10.0", result="right"),
        row("d/none", "3.10.0", result="unsupported"),
        row("c/loss", "2.0.0", result="hangs", package="tf_keras"),
    ),
)


@cases(
    (["smoke.clip"], ["a/clip", "b/clip"]),
    (["smoke.other", "smoke.loss"], ["b/clip", "c/loss"]),
    (["smoke.unknown"], []),
    ([], []),
)
def test_features_that_checks_judge(checks: list[str], features: list[str]) -> None:
    assert features_of_checks(MATRIX, checks) == features


def test_spans_are_by_package_and_feature() -> None:
    found = [(span.package, span.releases, span.observed) for span in spans(MATRIX, "c/loss")]
    assert found == [("keras", ("3.10.0",), "as in 3.10.0"), ("tf_keras", ("2.0.0",), "as in 2.0.0")]


RESULTS = st.dictionaries(
    st.integers(0, 30).map("3.{}.0".format), st.tuples(st.sampled_from(["wrong", "right", "hangs"]), st.booleans())
)


@given(RESULTS)
def test_span_is_of_neighbours_with_one_result_and_shows_the_newest(found: dict[str, tuple[str, bool]]) -> None:
    groups = {key: [release for release, its in found.items() if its == key] for key in found.values()}
    rows = tuple(row("c/loss", *releases, result=key[0]) for key, releases in groups.items())
    split = list(spans(small_matrix(keras_features=rows), "c/loss"))
    assert [release for span in split for release in span.releases] == sorted(found, key=Version)
    assert all(one.result != other.result for one, other in pairwise(split))
    for span in split:
        assert {found[release][0] for release in span.releases} == {span.result}
        assert span.observed == f"as in {groups[found[span.releases[-1]]][-1]}"


@cases(
    (("keras>=3.0",), None, [("keras", "3.10.0", 2, ["a/clip"])]),
    (("keras<3.10",), None, [("keras", "3.2.1", 1, ["a/clip"])]),
    (("keras>=4",), None, []),
    (("keras-nightly>=3.0",), None, [("keras", "3.11.0rc0", 1, ["a/clip"])]),
    ((), "2.0.0", [("tf_keras", "2.0.0", 1, ["c/loss"])]),
    ((), "2.1.0", []),
    ((), None, []),
    (("keras>=3.0",), "2.0.0", [("keras", "3.10.0", 2, ["a/clip"]), ("tf_keras", "2.0.0", 1, ["c/loss"])]),
)
def test_keras_of_a_release_of_tensorflow(
    requires: tuple[str, ...], tf_keras: str | None, found: list[tuple[str, str, int, list[str]]]
) -> None:
    keras = for_release(MATRIX, release("2.0.0", requires=requires, tf_keras=tf_keras))
    assert [
        (item.package, item.release, item.features, [defect.feature for defect in item.defects]) for item in keras
    ] == found


@cases(
    (1, (), "1 measured feature, no defect"),
    (3, (), "3 measured features, no defect"),
    (3, (known("c/loss"),), "1 of 3 measured features fail: wrong without an error with losses"),
)
def test_keras_in_one_sentence(features: int, defects: tuple[KnownFeature, ...], text: str) -> None:
    found = KerasOnReplicas(package="keras", release="3.10.0", features=features, defects=defects)
    assert found.text(MATRIX) == text
