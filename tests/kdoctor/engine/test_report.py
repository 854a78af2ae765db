from dataclasses import replace

from helpers.cases import cases
from helpers.reports import cpu_report, failure, result
from kdoctor.engine.report import Conclusion, Mark, Verdict
from kdoctor.model import Severity, Status


@cases(
    (Conclusion.PASS, False, "OK"),
    (Conclusion.PASS, True, "WARNING"),
    (Conclusion.FAIL, True, "CRITICAL"),
    (Conclusion.UNKNOWN, True, "UNKNOWN"),
)
def test_service_state_follows_the_conclusion(conclusion: Conclusion, *, warned: bool, service: str) -> None:
    assert Verdict(conclusion=conclusion, exit_code=0, reason="", warned=warned).service == service


def test_every_status_and_mark_is_counted() -> None:
    warning = failure("gpu.fan", severity=Severity.WARNING)
    report = replace(
        cpu_report(), results=(failure("gpu.free"), warning, result("gpu.clocks"), result("gpu.x", Status.SKIP))
    )
    assert report.counts() == {Status.PASS: 1, Status.FAIL: 2, Status.SKIP: 1, Status.UNKNOWN: 0}
    assert {mark.value: count for mark, count in report.marks().items() if count} == {
        "pass": 1, "error": 1, "warning": 1, "skip": 1
    }  # fmt: skip
    assert len(report.marks()) == len(Mark)
