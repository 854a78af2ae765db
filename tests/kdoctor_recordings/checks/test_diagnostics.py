from __future__ import annotations

import pytest

from kdoctor.facts import FactGroup
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_recordings.checks.gpu.diagnostic_warnings import diagnostic_warnings
from kdoctor_recordings.checks.gpu.diagnostics import diagnostics
from kdoctor_recordings.facts import Diagnostic, Diagnostics, DiagnosticStatus


def given(*statuses: DiagnosticStatus) -> Diagnostics:
    return Diagnostics(
        results=tuple(
            Diagnostic(tool="dcgmi diag", test=f"test {place}", subject="GPU 3", status=status, message="a message")
            for place, status in enumerate(statuses)
        )
    )


@pytest.mark.parametrize(
    ("statuses", "errors", "warnings"),
    [
        (("pass", "pass"), Status.PASS, Status.PASS),
        (("pass", "fail"), Status.FAIL, Status.PASS),
        (("pass", "warn"), Status.PASS, Status.FAIL),
        (("skip", "skip"), Status.SKIP, Status.SKIP),
        (("unknown",), Status.UNKNOWN, Status.SKIP),
        (("warn",), Status.SKIP, Status.FAIL),
        ((), Status.SKIP, Status.SKIP),
    ],
)
def test_results_of_a_tool(statuses: tuple[DiagnosticStatus, ...], errors: Status, warnings: Status) -> None:
    results = [compute_check(check, given(*statuses)) for check in (diagnostics, diagnostic_warnings)]
    assert [result.status for result in results] == [errors, warnings]
    assert [result.severity for result in results] == [Severity.ERROR, Severity.INFO]


def test_failed_test_is_named_with_its_gpu() -> None:
    (found,) = compute_check(diagnostics, given("pass", "fail")).findings
    assert found.finding.subject == "GPU 3"
    assert "test 1" in found.finding.observed


def test_without_results_it_does_not_pass() -> None:
    missing: dict[type[FactGroup], str] = {Diagnostics: "not given"}
    assert compute_check(diagnostics, missing=missing).status is Status.SKIP
    assert compute_check(diagnostic_warnings, missing=missing).status is Status.SKIP
