import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from helpers.reports import (
    LONG_COMMAND,
    complete,
    cpu_report,
    failure,
    finding,
    gpu_report,
    passing_report,
    result,
    unknown_report,
    with_text,
)
from kdoctor.engine.report import Report, Result
from kdoctor.model import Evidence, Remedy, Severity, Status
from kdoctor.report.formats import render
from kdoctor.text.canvas import SCREEN, Canvas

REPORTS = {"passed": passing_report(), "warning": cpu_report(), "failed": gpu_report(), "unknown": unknown_report()}


def terminal(report: Report, **canvas: int | bool) -> str:
    return render(report, "terminal", Canvas(**canvas))  # type: ignore[arg-type]


def busy(number: int, **changes: object) -> Result:
    """A failure of a separate check, with a separate fix."""
    remedy = Remedy.configure(f"Stop job {number}.", f"kill {number}")
    found = finding(f"host {number}", observed=f"busy with job {number}", remedy=remedy)
    return failure(f"host.busy-{number}", found, **changes)


@pytest.mark.parametrize("name", REPORTS)
def test_screen(name: str, screen: SnapshotAssertion) -> None:
    assert terminal(REPORTS[name]) == screen


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_lines_fit_the_width_except_commands(name: str, width: int) -> None:
    report = REPORTS[name]
    commands = {command for step in report.plan for command in step.commands}
    for line in terminal(report, width=width).splitlines():
        assert cell_len(line) <= width or line.strip().removeprefix("Fix: ") in commands or report.command in line
        assert line == line.rstrip()


@pytest.mark.parametrize("number", [1, 2, 3, 5, 12, 80])
def test_any_number_of_problems_fits_one_screen(number: int) -> None:
    lines = terminal(cpu_report(results=tuple(busy(index) for index in range(number)))).splitlines()
    assert len(lines) <= SCREEN
    assert any("host 0: busy with job 0" in line for line in lines)
    assert "    kill 0" in [line[2:] for line in lines]


@pytest.mark.parametrize(("number", "has_fixes"), [(8, True), (14, False)])
def test_last_problems_are_a_line_and_one_for_the_fix_if_there_is_room(number: int, *, has_fixes: bool) -> None:
    lines = terminal(cpu_report(results=tuple(busy(index) for index in range(number)))).splitlines()
    assert any(line.startswith("✗ host 7: busy with job 7") and line.endswith("(host.busy-7)") for line in lines)
    assert ("  Fix: kill 7" in lines) == has_fixes


def test_worst_problem_comes_first_and_is_in_the_verdict() -> None:
    text = terminal(cpu_report(results=(busy(1, severity=Severity.WARNING), busy(2))))
    assert text.index("✗ host 2") < text.index("! host 1")
    assert "host 2: busy with job 2 (host.busy-2), and 1 more problem" not in text  # a warning does not block
    assert "host 2: busy with job 2 (host.busy-2)" in text.splitlines()[-1]


def test_one_line_for_each_family_with_its_mark() -> None:
    text = terminal(
        cpu_report(
            results=(
                result("versions.cuda-build", evidence=(Evidence(subject="a", observed="b", brief="CUDA 12.5.1"),)),
                result("gpu.free", Status.UNKNOWN, reason="not read"),
                busy(1, severity=Severity.WARNING),
                failure("smoke.baseline", finding("mirrored", observed="off")),
                result("topology.pairs", Status.SKIP, reason="one GPU"),
            )
        )
    )
    assert re.findall(r"^\[(.)\] (\w+)", text, re.MULTILINE) == [
        ("✓", "Versions"),
        ("?", "GPUs"),
        ("–", "Topology"),  # noqa: RUF001 - the mark
        ("!", "Host"),
        ("✗", "Training"),
    ]
    assert "CUDA 12.5.1" in text


def test_ascii_stream_gets_ascii_marks() -> None:
    text = terminal(gpu_report(), unicode=False)
    assert text.isascii()
    assert re.findall(r"^\[(..)\]", text, re.MULTILINE) == ["XX", "XX", "--", "??"]


def test_commands_are_whole_lines() -> None:
    first = finding("A", remedy=Remedy.configure("Do it.", LONG_COMMAND))
    lines = terminal(cpu_report(results=(failure("gpu.free", first),)), width=60).splitlines()
    assert LONG_COMMAND in [line.strip() for line in lines]


def test_explained_and_blocked_checks_are_counted_with_the_cause() -> None:
    driver = failure("driver.loaded", finding("driver", observed="not loaded"))
    blocked = [result(f"gpu.check-{n}", Status.SKIP, blocked_by="driver.loaded") for n in range(5)]
    baseline = failure("smoke.baseline", finding("mirrored", explained_by=("driver.loaded",)))
    text = terminal(cpu_report(results=(driver, *blocked, baseline)))
    assert "Also explains: smoke.baseline" in text
    assert "5 checks" in text
    assert text.count("✗ ") == 1


def test_problem_for_information_is_not_shown() -> None:
    text = terminal(cpu_report(results=(result("gpu.free"), busy(1, severity=Severity.INFO))))
    assert "busy" not in text
    assert text.splitlines()[-1] == "READY in 34.2 s: 1 passed"


def test_checks_that_could_not_be_judged_are_one_block() -> None:
    gaps = [result(f"gpu.check-{n}", Status.UNKNOWN, reason=f"reason {n % 5}") for n in range(10)]
    text = terminal(cpu_report(results=tuple(gaps)))
    assert text.count("? 10 checks") == 1
    assert "reason 0" in text
    assert "2 more reasons" in text


def test_check_again_is_the_command_of_the_run() -> None:
    text = terminal(cpu_report())
    assert re.search(r"^Check again \(-v: every check\): kdoctor check --checklist cpu-smoke$", text, re.MULTILINE)
    assert re.search("^Every check: kdoctor check --checklist cpu-smoke -v$", terminal(passing_report()), re.MULTILINE)
    assert "Every check" not in terminal(cpu_report(command=""))


def test_interruption_is_shown() -> None:
    interrupted = terminal(complete(cpu_report(), interrupted=True))
    assert any("interrupted" in line for line in interrupted.splitlines()[:4])
    assert "INCONCLUSIVE" in interrupted


def test_colours_change_nothing_but_the_escape_codes() -> None:
    plain, coloured = terminal(gpu_report()), terminal(gpu_report(), colour=True)
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_codes_of_other_programs_do_not_reach_the_terminal() -> None:
    text = terminal(with_text(cpu_report(), "a\x1b[31mred\x1b]0;title\x07 \r\x9b2J\udcff"))
    assert "a\\x1b" not in text
    assert "ared\\x1b]0;title\\x07" in text


def test_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = terminal(gpu_report())
    for name, value in (("COLUMNS", "20"), ("FORCE_COLOR", "1"), ("TERM", "dumb"), ("TTY_COMPATIBLE", "1")):
        monkeypatch.setenv(name, value)
    assert terminal(gpu_report()) == before


def test_empty_report_is_readable() -> None:
    assert terminal(complete(replace(gpu_report(), decisions=()), results=())).splitlines()[-1].startswith("INCON")


def test_passing_run_shows_drift_and_waivers_that_cover_nothing() -> None:
    failed = gpu_report()
    shown = terminal(replace(passing_report(), drift=failed.drift, unused_waivers=failed.unused_waivers))
    assert "3 changes since the lock of 2029-12-24: driver.version" in shown
    assert "topology.pairs GPU 0 - GPU 1" in shown
    assert "since the lock" not in terminal(passing_report())
