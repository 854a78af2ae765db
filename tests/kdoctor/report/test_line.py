from __future__ import annotations

from helpers.reports import cpu_report, gpu_report, with_text
from kdoctor.report.formats import render


def test_the_verdict_in_one_line() -> None:
    assert render(cpu_report(), "line") == (
        "kdoctor PASS in 34.2 s: 3 passed, 1 failed, 4 skipped, 1 unknown; nothing that stops the job; "
        "smoke.starved-replica failed; fix forward: smoke.starved-replica (cpu-smoke, version 1)\n"
    )


def test_what_was_decided_stands_in_it() -> None:
    assert "; roll back at once: versions.driver-for-cuda; investigate: gpu" in render(gpu_report(), "line")


def test_it_is_one_line_whatever_the_machine_says() -> None:
    assert render(with_text(gpu_report(), "a\nb\r\nc"), "line").count("\n") == 1
