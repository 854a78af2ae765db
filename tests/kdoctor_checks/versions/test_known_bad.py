from __future__ import annotations

import pytest

from helpers.facts import PYTHON, keras, package, packages, target, tensorflow
from kdoctor.engine.report import Result
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.known_bad import known_bad


def judged(release: str, numpy: str | None, matrix: VersionMatrix | None = None) -> Result:
    found = packages(package("tensorflow", release), *([package("numpy", numpy)] if numpy else []))
    return compute_check(known_bad, found, tensorflow(version=release), target(), matrix=matrix)


@pytest.mark.parametrize(
    ("release", "numpy", "status"),
    [
        ("2.10.1", "2.0.2", Status.FAIL),
        ("2.11.1", "2.2.6", Status.FAIL),
        ("2.17.1", "2.0.0", Status.FAIL),
        ("2.17.1", "1.26.4", Status.PASS),
        ("2.18.1", "2.0.2", Status.PASS),
        ("2.21.0", "2.4.6", Status.PASS),
        ("2.21.0", "not a version", Status.PASS),  # versions.package-conflicts reports the invalid version
        ("2.99.0", "2.4.6", Status.UNKNOWN),
        ("two", "2.4.6", Status.UNKNOWN),
    ],
)
def test_combinations_are_looked_up_in_the_matrix(release: str, numpy: str | None, status: Status) -> None:
    assert judged(release, numpy).status is status


def test_finding_has_the_symptom_and_the_versions_that_fix_it() -> None:
    finding = judged("2.11.1", "2.0.2").findings[0].finding
    assert finding.subject == "tensorflow 2.11.1 with numpy 2.0.2"
    assert finding.observed == "A module that was compiled using NumPy 1.x cannot be run in NumPy 2"
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'numpy<2'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.11.1 numpy==2.0.2",)


def test_unknown_release_names_the_date_of_the_matrix() -> None:
    (item,) = judged("2.99.0", None).unjudged
    assert str(shipped_matrix().updated) in item.reason


def test_custom_entry_counts_like_a_shipped_one() -> None:
    row = """
- id: our_own
  when: {tensorflow: "==2.21.0", h5py: "<3.12"}
  effect: crash
  symptom: our models do not load
  fix: h5py 3.12 or newer
  source: seen here
"""
    result = compute_check(
        known_bad,
        packages(package("tensorflow", "2.21.0"), package("h5py", "3.11.0")),
        tensorflow(),
        target(),
        matrix=loads(shipped_text() + row.encode()),
    )
    assert result.findings[0].finding.observed == "our models do not load"
    assert result.findings[0].finding.remedy.look == ("kdoctor matrix",)


@pytest.mark.parametrize(("requirement", "explained_by"), [("numpy<2", ("versions.package-conflicts",)), ("numpy", ())])
def test_package_that_also_breaks_a_requirement_is_one_problem(requirement: str, explained_by: tuple[str, ...]) -> None:
    installed = packages(package("tensorflow", "2.17.1", requirement), package("numpy", "2.2.6"))
    result = compute_check(known_bad, installed, tensorflow(version="2.17.1"), keras(), target())
    finding = result.findings[0].finding
    assert finding.subject == "tensorflow 2.17.1 with numpy 2.2.6"
    assert finding.explained_by == explained_by
    assert finding.remedy.commands[0].endswith("install 'numpy<2'")
