from __future__ import annotations

import pytest

from helpers.facts import PYTHON, package, packages, target
from kdoctor.engine.report import Result
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.packages_expected import packages_expected


def judged(version: str | None, wanted: str = "~=2.21.0") -> Result:
    facts = (packages(package("tensorflow", version)), target())
    return compute_check(packages_expected, *facts, assumptions=Assumptions(packages={"tensorflow": wanted}))


@pytest.mark.parametrize(
    ("version", "wanted", "status"),
    [
        ("2.21.0", "~=2.21.0", Status.PASS),
        ("2.21.3", "~=2.21.0", Status.PASS),
        ("2.22.0", "~=2.21.0", Status.FAIL),
        ("2.21.0rc1", ">=2.20", Status.PASS),
        ("2.21.0+cu13", "==2.21.0", Status.PASS),
        (None, "~=2.21.0", Status.UNKNOWN),
        ("custom", "~=2.21.0", Status.UNKNOWN),
        ("2.21.0", "two", Status.UNKNOWN),
    ],
)
def test_versions_are_compared_with_the_checklist(version: str | None, wanted: str, status: Status) -> None:
    assert judged(version, wanted).status is status


def test_finding_has_a_remedy_and_a_rollback() -> None:
    finding = judged("2.22.0").findings[0].finding
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tensorflow~=2.21.0'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.22.0",)


def test_missing_package_fails_whatever_the_spelling_of_its_name() -> None:
    wanted = Assumptions(packages={"Horovod": ">=0.28", "ML_dtypes": ">=0.5"})
    result = compute_check(packages_expected, packages(), target(), assumptions=wanted)
    assert [item.finding.subject for item in result.findings] == ["Horovod"]
    assert [item.subject for item in result.evidence] == ["ML_dtypes"]


def test_checklist_without_packages_is_skipped() -> None:
    assert compute_check(packages_expected, packages(), target()).status is Status.SKIP


def test_unread_packages_are_unknown() -> None:
    wanted = Assumptions(packages={"tensorflow": ">=2"})
    assert compute_check(packages_expected, target(), assumptions=wanted).status is Status.UNKNOWN
