from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.facts import PYTHON, keras, package, packages, target, tensorflow
from kdoctor.engine.report import Result
from kdoctor.facts import Package
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.package_conflicts import package_conflicts


def judged(*installed: Package, where: dict[str, Any] | None = None, **choice: Any) -> Result:
    default: dict[str, Any] = {"package": "tensorflow", "version": "2.21.0"}
    facts = (packages(*installed), tensorflow(), keras(**(default | choice)), target(**(where or {})))
    return compute_check(package_conflicts, *facts)


def root(*requires: str) -> Package:
    return package("tensorflow", "2.21.0", *requires)


def test_met_requirements_pass_and_are_counted() -> None:
    result = judged(root("numpy>=1.26", "ml_dtypes"), package("numpy", "2.4.6"), package("ml-dtypes", "0.5", "numpy"))
    assert result.status is Status.PASS
    assert re.findall(r"\d+", result.evidence[0].observed) == ["3", "3"]


def test_default_environment_of_the_tests_passes() -> None:
    assert compute_check(package_conflicts, packages(), tensorflow(), keras(), target()).status is Status.PASS


def test_unsuitable_version_gets_a_command_that_meets_all_requirements() -> None:
    result = judged(
        root("numpy<2.0.0,>=1.23.5", "ml-dtypes"),
        package("ml-dtypes", "0.3.1", "numpy>1.20"),
        package("numpy", "2.4.6"),
    )
    assert result.status is Status.FAIL
    (judged_finding,) = result.findings
    finding = judged_finding.finding
    assert finding.subject == "numpy 2.4.6"
    assert finding.brief == "tensorflow 2.21.0 needs >=1.23.5,<2.0.0"
    assert "numpy<2.0.0,>=1.23.5" in finding.expected
    assert "tensorflow 2.21.0" in finding.expected
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'numpy>=1.23.5,>1.20,<2.0.0'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip install numpy==2.4.6",)


def test_indirect_requirements_count() -> None:
    result = judged(root("keras"), package("keras", "3.15.1", "optree"), package("optree", "0.1", "absent>=2"))
    (item,) = result.findings
    assert item.finding.subject == "absent"
    assert "absent>=2" in item.finding.expected
    assert "optree 0.1" in item.finding.expected
    assert item.finding.rollback.commands == (f"{PYTHON} -m pip uninstall -y absent",)


def test_requirements_of_legacy_keras_count() -> None:
    legacy = package("tf-keras", "2.20.0", "tensorflow<2.21,>=2.20")
    result = judged(root("numpy"), package("numpy", "2.4.6"), legacy, package="tf-keras", version="2.20.0", legacy=True)
    assert [item.finding.subject for item in result.findings] == ["tensorflow 2.21.0"]


def test_conflicts_of_other_packages_are_not_reported_here() -> None:
    stranger = package("stranger", "1.0", "numpy<1.0")
    assert judged(root("numpy"), package("numpy", "2.4.6"), stranger).status is Status.PASS


@pytest.mark.parametrize(
    ("marker", "where", "status"),
    [
        ('python_version < "3.9"', {"version": "3.8.18"}, Status.FAIL),
        ('python_version < "3.9"', {"version": "3.11.7"}, Status.PASS),
        ('python_version < "3.9"', {"version": "3.10.2"}, Status.PASS),
        ('python_full_version >= "3.11.7"', {"version": "3.11.7"}, Status.FAIL),
        ('sys_platform == "win32"', {"platform": "win-amd64"}, Status.FAIL),
        ('platform_machine == "AMD64"', {"platform": "win-amd64"}, Status.FAIL),
        ('sys_platform == "win32"', {"platform": "linux-x86_64"}, Status.PASS),
        ('sys_platform == "darwin" and platform_machine == "arm64"', {"platform": "macosx-14.0-arm64"}, Status.FAIL),
        ('platform_machine == "aarch64"', {"platform": "linux-aarch64"}, Status.FAIL),
        ('platform_system == "Linux"', {"platform": "linux-aarch64"}, Status.FAIL),
        ('os_name == "nt"', {"platform": "linux-x86_64"}, Status.PASS),
        ('platform_python_implementation == "PyPy"', {"implementation": "pypy"}, Status.FAIL),
        ('implementation_name == "pypy"', {"implementation": "cpython"}, Status.PASS),
    ],
)
def test_markers_are_evaluated_for_the_target_interpreter(marker: str, where: dict[str, str], status: Status) -> None:
    assert judged(root("numpy", f"absent; {marker}"), package("numpy", "2.4.6"), where=where).status is status


def test_extra_counts_only_if_it_is_requested() -> None:
    client = package("client", "1.0", 'absent; extra == "fast"')
    assert judged(root("client"), client).status is Status.PASS
    assert judged(root("client[fast]"), client).status is Status.FAIL
    assert judged(root("client"), package("second", "1", "client[fast]"), client).status is Status.PASS


@pytest.mark.parametrize("version", [None, "unknown", "2.x"])
def test_invalid_version_is_unknown(version: str | None) -> None:
    assert judged(root("numpy>=1.26"), package("numpy", version)).status is Status.UNKNOWN


def test_invalid_version_without_a_restriction_passes() -> None:
    assert judged(root("numpy"), package("numpy", "local build")).status is Status.PASS


def test_installed_prerelease_is_compared_like_a_release() -> None:
    assert judged(root("numpy>=1.26"), package("numpy", "2.5.0rc1")).status is Status.PASS


def test_invalid_requirement_is_unknown() -> None:
    result = judged(root("numpy", "???"), package("numpy", "2.4.6"))
    assert result.status is Status.UNKNOWN
    assert "'???'" in (result.reason or "")


def test_missing_metadata_or_requirements_are_unknown() -> None:
    assert judged(root()).status is Status.UNKNOWN
    assert judged(package("numpy", "2.4.6")).status is Status.UNKNOWN


def test_circular_requirements_terminate() -> None:
    assert judged(root("numpy"), package("numpy", "2.4.6", "tensorflow")).status is Status.PASS


def test_conflict_of_keras_is_explained_by_its_release() -> None:
    installed = (root("keras>=3.12", "numpy>=2"), package("keras", "3.6.0"), package("numpy", "1.24.4"))
    result = judged(*installed, package="keras", version="3.6.0")
    found = {item.finding.subject: item.finding.explained_by for item in result.findings}
    assert found == {"keras 3.6.0": ("versions.keras-compatible",), "numpy 1.24.4": ()}


def test_legacy_keras_for_another_tensorflow_explains_the_conflict() -> None:
    legacy = package("tf-keras", "2.20.0", "tensorflow<2.21,>=2.20")
    result = judged(root("numpy"), package("numpy", "2.4.6"), legacy, package="tf-keras", version="2.20.0", legacy=True)
    assert result.findings[0].finding.explained_by == ("versions.keras-compatible",)


def test_missing_requirement_is_named_with_what_needs_it() -> None:
    finding = judged(root("numpy>=1.26")).findings[0].finding
    assert (finding.subject, finding.brief) == ("numpy", "not installed, but tensorflow 2.21.0 needs >=1.26")
