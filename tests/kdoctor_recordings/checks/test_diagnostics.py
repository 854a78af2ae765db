from dataclasses import replace

from helpers.cases import cases
from helpers.saying import briefs, said
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


@cases(
    (("pass", "pass"), Status.PASS, Status.PASS),
    (("pass", "fail"), Status.FAIL, Status.PASS),
    (("pass", "warn"), Status.PASS, Status.FAIL),
    (("skip", "skip"), Status.UNKNOWN, Status.SKIP),
    (("unknown",), Status.UNKNOWN, Status.SKIP),
    (("warn",), Status.SKIP, Status.FAIL),
    ((), Status.SKIP, Status.SKIP),
)
def test_results_of_a_tool(statuses: tuple[DiagnosticStatus, ...], errors: Status, warnings: Status) -> None:
    results = [compute_check(check, given(*statuses)) for check in (diagnostics, diagnostic_warnings)]
    assert [result.status for result in results] == [errors, warnings]
    assert [result.severity for result in results] == [Severity.ERROR, Severity.WARNING]


def test_failed_test_is_named_with_its_gpu_and_tool() -> None:
    other = Diagnostic(tool="nvvs", test="test 2", subject="GPU 3", status="pass")
    result = compute_check(diagnostics, Diagnostics(results=(*given("pass", "fail").results, other)))
    (found,) = result.findings
    assert (found.finding.subject, len(result.evidence)) == ("GPU 3", 1)
    assert "test 1" in found.finding.observed


def test_without_results_it_does_not_pass() -> None:
    missing: dict[type[FactGroup], str] = {Diagnostics: "not given"}
    assert compute_check(diagnostics, missing=missing).status is Status.SKIP
    assert compute_check(diagnostic_warnings, missing=missing).status is Status.SKIP


@cases(
    (("fail", "fail"), "dcgmi diag: test 0, test 1 failed", "test 0, test 1 failed"),
    (("fail", "pass", "fail"), "dcgmi diag: test 0, test 2 failed", "test 0, test 2 failed"),
    (("fail", "fail", "fail"), "dcgmi diag: test 0, test 1, test 2 failed", "test 0, test 1 and 1 more failed"),
    (("pass", "pass", "skip"), "dcgmi diag: 2 tests passed", None),
    (("pass", "unknown"), "dcgmi diag: no clear result of test 1", None),
)
def test_tests_are_counted_and_named(statuses: tuple[DiagnosticStatus, ...], observed: str, brief: str | None) -> None:
    result = compute_check(diagnostics, given(*statuses))
    assert observed in str(said(result))
    assert [item.finding.headline for item in result.findings] == ([brief] if brief else [])


def test_warnings_are_named() -> None:
    result = compute_check(diagnostic_warnings, given("warn", "warn", "warn"))
    assert briefs(result) == ["dcgmi diag: test 0, test 1 and 1 more"]
    assert "dcgmi diag: test 0, test 1, test 2: a" in str(said(result))


def test_setting_that_only_the_diagnostic_needs_is_a_warning_with_its_own_fix() -> None:
    result = Diagnostic(tool="dcgmi diag", test="Persistence Mode", subject="GPU 0", status="fail", message="disabled")
    found = Diagnostics(results=(result,))
    assert compute_check(diagnostics, found).status is Status.SKIP
    (warning,) = compute_check(diagnostic_warnings, found).findings
    assert warning.finding.remedy.commands == ("sudo nvidia-smi -pm 1",)
    assert warning.finding.rollback.commands == ("sudo nvidia-smi -pm 0",)


def test_fix_has_the_message_or_is_that_of_the_service() -> None:
    (failed,) = compute_check(diagnostics, given("fail")).findings
    assert "The message: a message. Follow" in failed.finding.remedy.summary
    service = Diagnostic(tool="fabric manager", test="service", subject="fabric manager", status="fail")
    services = (("fabric manager", "nvidia-fabricmanager"), ("nvidia-gridd", "nvidia-gridd"), ("DCGM", "nvidia-imex"))
    for tool, daemon in services:
        result = replace(service, tool=tool, message=f"{tool} or IMEX is unhealthy.")
        (stopped,) = compute_check(diagnostics, Diagnostics(results=(result,))).findings
        assert stopped.finding.remedy.commands == (f"sudo systemctl restart {daemon}",)
        assert "read-only" in failed.finding.rollback.why
        assert "a restart changes no configuration" in stopped.finding.rollback.why


def test_fix_of_the_persistence_daemon_loads_the_driver() -> None:
    found = Diagnostics(
        results=(Diagnostic(tool="nvidia-persistenced", test="service", subject="node", status="warn"),)
    )
    (warning,) = compute_check(diagnostic_warnings, found).findings
    assert "sudo nvidia-modprobe -c 0 -u" in str(warning.finding.remedy)
