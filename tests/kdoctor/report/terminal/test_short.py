import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from helpers.reports import (
    complete,
    cpu_report,
    failure,
    finding,
    gpu_report,
    passing_report,
    result,
    unknown_report,
    waiver,
)
from kdoctor.commands.ownership import CHECK_ANOTHER
from kdoctor.engine.report import Report, Result
from kdoctor.model import Evidence, Remedy, Severity, Status
from kdoctor.report.formats import render
from kdoctor.text.canvas import SCREEN, Canvas


def busy(number: int, **changes: object) -> Result:
    """A failure of a separate check, with a separate fix."""
    remedy = Remedy.configure(f"Stop job {number}.", f"kill {number}")
    found = finding(f"host {number}", observed=f"busy with job {number}", remedy=remedy)
    return failure(f"host.busy-{number}", found, **changes)


def test_each_cause_of_one_check_has_its_own_fix() -> None:
    found = [finding(name, observed=name, remedy=Remedy.configure(f"Stop {name}.", f"kill {name}")) for name in "ab"]
    text = render(cpu_report(results=(failure("host.busy", *found),)), "terminal")
    places = [text.index(part) for part in ("✗ a: a", "kill a", "✗ b: b", "kill b")]
    assert places == sorted(places)


def test_command_with_a_path_to_fill_in_is_not_the_whole_fix() -> None:
    remedy = Remedy.configure("Name it.", f"{CHECK_ANOTHER} --no-smoke")
    results = (*map(busy, range(7)), failure("host.other", finding("it", remedy=remedy)))
    text = render(cpu_report(results=results), "terminal")
    assert ("Fix: Name it" in text, CHECK_ANOTHER in text) == (True, False)


def test_event_is_said_next_to_a_problem_of_its_family() -> None:
    noted = failure("gpu.xids", finding("GPU 1", observed="a program failed", noted=True), severity=Severity.INFO)
    text = render(cpu_report(results=(failure("gpu.log", finding("GPU 2", observed="Xid 94")), noted)), "terminal")
    assert "\nGPU 1: a program failed\n" in text


FAMILIES = (
    result("versions.cuda-build", evidence=(Evidence(subject="a", observed="b", brief="CUDA 12.5.1"),)),
    result("gpu.free", Status.UNKNOWN, reason="not read"),
    busy(1, severity=Severity.WARNING),
    failure("smoke.baseline", finding("mirrored", observed="off")),
    result("topology.pairs", Status.SKIP, reason="one GPU"),
)
"""A family with each mark, and the worst problem last."""
EXPLAINED = (
    failure("driver.loaded", finding("driver", observed="not loaded")),
    *(result(f"gpu.check-{n}", Status.SKIP, blocked_by="driver.loaded") for n in range(5)),
    failure("smoke.baseline", finding("mirrored", explained_by=("driver.loaded",))),
)
GAPS = tuple(result(f"gpu.check-{n}", Status.UNKNOWN, reason=f"reason {n % 5}") for n in range(10))
REPORTS = {
    "passed": passing_report(),
    "warning": cpu_report(),
    "failed": gpu_report(),
    "unknown": unknown_report(),
    "families": cpu_report(results=FAMILIES),
    "explained": cpu_report(results=EXPLAINED),
    "note": cpu_report(results=(result("gpu.free"), busy(1, severity=Severity.INFO))),  # is not shown
    "gaps": cpu_report(results=GAPS),
    "problems-8": cpu_report(results=tuple(map(busy, range(8)))),  # with room for the fixes
    "problems-14": cpu_report(results=tuple(map(busy, range(14)))),
    "drift": replace(passing_report(), drift=gpu_report().drift, unused_waivers=gpu_report().unused_waivers),
    "interrupted": complete(cpu_report(command=""), interrupted=True),  # without a command to check again
}


def terminal(report: Report, **canvas: int | bool) -> str:
    return render(report, "terminal", Canvas(**canvas))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REPORTS)
def test_screen(name: str, screen: SnapshotAssertion) -> None:
    assert terminal(REPORTS[name]) == screen


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_lines_fit_the_width_except_commands(name: str, width: int) -> None:
    report = REPORTS[name]
    commands = {command for step in report.plan for command in step.commands}
    for line in terminal(report, width=width).splitlines():
        pasted = set(line.strip().removeprefix("Fix: ").split(" && "))
        assert cell_len(line) <= width or pasted <= commands or report.command in line
        assert line == line.rstrip()


@pytest.mark.parametrize("number", [1, 2, 3, 5, 12, 80])
def test_any_number_of_problems_fits_one_screen(number: int) -> None:
    lines = terminal(cpu_report(results=tuple(busy(index) for index in range(number)))).splitlines()
    assert len(lines) <= SCREEN
    assert any("host 0: busy with job 0" in line for line in lines)
    assert "    kill 0" in [line[2:] for line in lines]


def test_problems_are_named_below_gaps_that_decide_the_verdict() -> None:
    report = cpu_report(results=(*GAPS, *(busy(index, severity=Severity.WARNING) for index in range(12))))
    text = terminal(report)
    assert ("? 10 checks could not be judged" in text, text.count("! host ")) == (True, 12)


def test_ascii_stream_gets_ascii_marks() -> None:
    text = terminal(gpu_report(), unicode=False)
    assert text.isascii()
    assert re.findall(r"^\[(..)\]", text, re.MULTILINE) == ["XX", "XX", "--", "??"]


def test_unused_waiver_names_the_subjects_that_its_check_found() -> None:
    report = cpu_report(results=(failure("gpu.free", finding("GPU 7")),), unused_waivers=(waiver("gpu.free"),))
    assert "(found: GPU 7)" in terminal(report)


def test_empty_report_is_readable() -> None:
    assert terminal(complete(replace(gpu_report(), decisions=()), results=())).splitlines()[-1].startswith("INCON")
