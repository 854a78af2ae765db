import re
from dataclasses import replace

from helpers.cases import cases
from helpers.reports import cpu_report, failure, gpu_report, result, with_text
from kdoctor.engine.report import Conclusion, Result, Verdict
from kdoctor.engine.verdict import conclude, exit_code_for
from kdoctor.model import Severity, Status
from kdoctor.report.formats import render

# From the guidelines: 'label'=value[UOM];[warn];[crit];[min];[max], labels with spaces in single quotes.
DATUM = re.compile(r"^('[^'=]+'|[^ '=]+)=(-?[0-9.]+)(s|%|c|B)?;([0-9.]*);([0-9.]*);([0-9.]*);?([0-9.]*)$")


def split(line: str) -> tuple[str, dict[str, float]]:
    text, bar, data = line.removesuffix("\n").partition(" | ")
    assert bar
    assert "|" not in text + data
    assert "\n" not in text + data
    found = {}
    for datum in re.findall(r"'[^']*'=\S+|\S+", data):
        read = DATUM.match(datum)
        assert read, datum
        found[read[1].strip("'")] = float(read[2])
    return text, found


def test_line_has_state_and_performance_data() -> None:
    text, data = split(render(cpu_report(), "nagios"))
    assert text.startswith("KDOCTOR WARNING - READY in 34.2 s: 3 passed, 1 warning")
    assert {name: data[name] for name in ("pass", "error", "warning", "skip", "unknown", "time")} == {
        "pass": 3,
        "error": 0,
        "warning": 1,
        "skip": 4,
        "unknown": 1,
        "time": 34.21,
    }
    assert data["smoke.baseline/mirrored step"] == 0.0041


def test_failed_run_is_critical() -> None:
    assert render(gpu_report(), "nagios").startswith("KDOCTOR CRITICAL - NOT READY")


def test_bar_in_the_text_is_replaced() -> None:
    report = replace(
        cpu_report(), verdict=Verdict(conclusion=Conclusion.UNKNOWN, exit_code=3, reason="a | b\nc could not be judged")
    )
    assert "a / b c could not be judged" in split(render(report, "nagios"))[0]
    split(render(with_text(cpu_report(), "x | y=1"), "nagios"))


WARNED = failure("gpu.free", severity=Severity.WARNING)


@cases(
    ([result("gpu.free")], Severity.ERROR, 0),
    ([result("gpu.count-expected"), failure("gpu.free", severity=Severity.INFO)], Severity.ERROR, 0),
    ([result("gpu.count-expected"), WARNED], Severity.ERROR, 1),
    ([result("gpu.count-expected"), WARNED], Severity.WARNING, 2),
    ([failure("gpu.free")], Severity.ERROR, 2),
    ([result("gpu.free", Status.UNKNOWN, reason="not read")], Severity.ERROR, 3),
    ([result("gpu.free", Status.SKIP)], Severity.ERROR, 3),
    ([], Severity.ERROR, 3),
)
def test_exit_code_is_that_of_a_plugin(results: list[Result], fail_on: Severity, code: int) -> None:
    verdict = conclude(results, fail_on)
    assert exit_code_for(verdict, "nagios") == code
    assert exit_code_for(verdict, "json") == verdict.exit_code


def test_interrupted_run_is_not_ok() -> None:
    verdict = conclude([result("gpu.free")], interrupted=True)
    assert exit_code_for(verdict, "nagios") == 3
    assert exit_code_for(verdict, "terminal") == 130
