"""The shipped table of what distributed Keras does."""

from kdoctor.catalog.load import load_catalog
from kdoctor.failures.known import load_failures
from kdoctor.matrix.load import load_matrix

MATRIX = load_matrix(environ={})


def test_features_are_cases_of_scenarios_and_name_checks() -> None:
    catalog = load_catalog()
    for name, feature in MATRIX.features.items():
        scenario, _, case = name.partition("/")
        assert case in catalog.scenarios[f"smoke.{scenario}"].cases
        assert set(feature.checks) <= set(catalog.checks)


def test_every_result_is_about_a_measured_release() -> None:
    measured = {(row.package, row.release) for row in MATRIX.keras_releases}
    results = {(row.package, release) for row in MATRIX.keras_features for release in row.releases}
    assert results == measured


def test_tf_keras_trains_the_baseline_as_one_device() -> None:
    releases = [row.release for row in MATRIX.keras_releases if row.package == "tf_keras"]
    assert releases
    known = [MATRIX.keras_feature("baseline/mirrored", "tf_keras", release) for release in releases]
    assert {item.result for item in known if item.measured} == {"right"}


def test_known_failures_of_features_are_in_the_table() -> None:
    catalog, known = load_catalog(), load_failures()
    for failure in ("keras3_clips_each_replica", "keras3_steps_per_execution", "keras3_equal_masks"):
        assert failure in known.by_id
        checks = {check.id for check in catalog.checks.values() if failure in check.failure_modes}
        features = [name for name, feature in MATRIX.features.items() if checks & set(feature.checks)]
        results = {MATRIX.keras_feature(name, "keras", "3.15.1").result for name in features}
        assert results & {"wrong", "raises"}, failure
