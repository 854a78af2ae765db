from __future__ import annotations

from helpers.facts import keras, package, packages, target, tensorflow
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import Package
from kdoctor.model import Severity, Status
from kdoctor_checks.versions.other_conflicts import other_conflicts


def judged(*others: Package) -> Result:
    core = (package("tensorflow", "2.21.0", "numpy>=3"), package("keras", "3.15.1", "numpy"), package("numpy", "2.4.6"))
    return compute_check(other_conflicts, packages(*core, *others), tensorflow(), keras(), target())


def test_a_conflict_of_a_package_besides_tensorflow_is_a_warning() -> None:
    result = judged(package("pandas", "3.0", "numpy<2", "pytz"))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == ["numpy", "pytz"]
    assert result.findings[0].finding.expected == "numpy<2 (for pandas 3.0)"


def test_what_tensorflow_itself_refuses_is_told_elsewhere() -> None:
    result = judged(package("pandas", "3.0", "tensorflow", "numpy>=2"))
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "2 requirements of 1 other distributions are met"


def test_nothing_else_installed_is_a_skip() -> None:
    assert judged().status is Status.SKIP


def test_a_version_that_cannot_be_compared_is_unknown() -> None:
    assert judged(package("pandas", "3.0", "pytz>1"), package("pytz", None)).status is Status.UNKNOWN
