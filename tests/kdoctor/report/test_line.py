from dataclasses import replace

from helpers.reports import cpu_report, gpu_report
from kdoctor.model import Severity
from kdoctor.report.formats import render


def test_line_has_verdict_counts_and_checklist() -> None:
    reason = cpu_report().verdict.reason
    assert render(cpu_report(), "line") == (
        f"kdoctor READY in 34.2 s: 3 passed, 1 warning, 1 unknown, 4 skipped ({reason}) (cpu-smoke, version 1)\n"
    )


def test_line_has_the_decisions() -> None:
    assert "; roll back at once: versions.driver-for-cuda; investigate: gpu" in render(gpu_report(), "line")
    notes = tuple(replace(cause, severity=Severity.INFO) for cause in gpu_report().causes)
    assert "investigate" not in render(replace(gpu_report(), causes=notes), "line"), "a hint decides nothing"


def test_line_offers_no_rollback_where_no_passing_run_is_recorded() -> None:
    text = render(replace(gpu_report(), drift=None), "line")
    assert "roll back" not in text
    assert "; investigate: gpu" in text
