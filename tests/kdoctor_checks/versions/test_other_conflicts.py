from __future__ import annotations

import re

from helpers.facts import keras, package, packages, target, tensorflow
from kdoctor.engine.report import Result
from kdoctor.facts import Package
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.other_conflicts import other_conflicts


def judged(*others: Package) -> Result:
    core = (package("tensorflow", "2.21.0", "numpy>=3"), package("keras", "3.15.1", "numpy"), package("numpy", "2.4.6"))
    return compute_check(other_conflicts, packages(*core, *others), tensorflow(), keras(), target())


def test_conflict_of_another_package_is_a_warning() -> None:
    result = judged(package("pandas", "3.0", "numpy<2", "pytz"))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == ["numpy 2.4.6", "pytz"]
    assert "numpy<2" in result.findings[0].finding.expected
    assert "pandas 3.0" in result.findings[0].finding.expected


def test_conflict_of_tensorflow_is_not_reported_here() -> None:
    result = judged(package("pandas", "3.0", "tensorflow", "numpy>=2"))
    assert result.status is Status.PASS
    assert re.findall(r"\d+", result.evidence[0].observed) == ["2", "1"]


def test_environment_without_other_packages_is_skipped() -> None:
    assert judged().status is Status.SKIP


def test_missing_version_is_unknown() -> None:
    assert judged(package("pandas", "3.0", "pytz>1"), package("pytz", None)).status is Status.UNKNOWN
