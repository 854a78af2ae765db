from __future__ import annotations

import pytest

from helpers.facts import package, packages, target, tensorflow
from kdoctor.facts import TensorFlowBuild
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.python_supported import python_supported


def judged(python: str, wanted: str | None = None, requires_python: str | None = ">=3.10") -> Status:
    installed = packages(package("tensorflow", "2.21.0", requires_python=requires_python))
    facts = (target(version=python), installed, tensorflow())
    return compute_check(python_supported, *facts, assumptions=Assumptions(python=wanted)).status


@pytest.mark.parametrize(
    ("python", "wanted", "status"),
    [
        ("3.11.7", None, Status.PASS),
        ("3.10.0", None, Status.PASS),
        ("3.9.18", None, Status.FAIL),
        ("3.13.1", ">=3.10,<3.14", Status.PASS),
        ("3.14.0", ">=3.10,<3.14", Status.FAIL),
        ("3.14.0rc2", ">=3.10", Status.PASS),
        ("3.11.7+local", ">=3.10", Status.PASS),
        ("3.11.7", "three", Status.UNKNOWN),
        ("unknown", None, Status.UNKNOWN),
    ],
)
def test_python_is_compared_with_the_checklist_and_with_tensorflow(
    python: str, wanted: str | None, status: Status
) -> None:
    assert judged(python, wanted) is status


def test_finding_names_the_package_that_restricts_python() -> None:
    installed = packages(package("tensorflow", "2.21.0", requires_python=">=3.10"))
    result = compute_check(python_supported, target(version="3.9.18"), installed, tensorflow())
    finding = result.findings[0].finding
    assert finding.subject == "Python 3.9.18"
    assert "tensorflow 2.21.0" in finding.brief
    assert ">=3.10" in finding.expected
    python = "/opt/job-py3.13/bin/python"  # the newest Python that TensorFlow 2.21 has wheels for
    assert finding.remedy.commands == (
        "uv venv --python 3.13 /opt/job-py3.13",
        f"uv pip install --python {python} tensorflow==2.21.0",
        f"kdoctor check --python {python}",
    )
    assert finding.rollback.kind == "nothing"


def test_tensorflow_without_requires_python_is_unknown() -> None:
    assert judged("3.11.7", requires_python=None) is Status.UNKNOWN


def test_checklist_is_judged_without_tensorflow() -> None:
    facts = (target(version="3.9.18"), packages(package("numpy")), TensorFlowBuild(installed=False))
    assert compute_check(python_supported, *facts).status is Status.SKIP
    assert compute_check(python_supported, *facts, assumptions=Assumptions(python=">=3.10")).status is Status.FAIL
    assert compute_check(python_supported, *facts, assumptions=Assumptions(python=">=3.9")).status is Status.PASS
