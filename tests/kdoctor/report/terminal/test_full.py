import re
from dataclasses import replace
from datetime import date

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from helpers.reports import (
    LONG_COMMAND,
    MARKUP_COMMAND,
    complete,
    cpu_report,
    failure,
    finding,
    gpu_report,
    result,
    waiver,
    with_text,
)
from kdoctor.engine.report import Drift, JudgedFinding, Report
from kdoctor.model import Remedy, Severity, Status
from kdoctor.report.formats import render
from kdoctor.text.canvas import Canvas

WIDTHS = (40, 60, 80, 120)
STACKS = 'Thread 0x1:\n  File "a.py", line 1 in fit\n  File "b.py", line 2 in <module>'
HELD = [finding(f"GPU {index}", observed=f"{80 + index} of 1980 MHz", brief="held back") for index in range(2)]
EXPIRED = JudgedFinding(finding=finding(), waiver=waiver("gpu.free", expires=date(2020, 1, 1)), expired=True)
VARIED = complete(
    gpu_report(),
    results=(
        failure("host.swap", finding("mild", remedy=Remedy.configure("Free it.")), severity=Severity.WARNING),
        failure("host.limits", finding("note", remedy=Remedy.configure("Raise it.")), severity=Severity.INFO),
        failure("gpu.fan", finding("A", expected="1"), finding("B", expected="2"), sources=("https://example.org/c",)),
        failure("gpu.clocks", *HELD),  # each value below the shared headline
        failure("gpu.free", findings=(EXPIRED,)),
        failure("smoke.pairs", finding("case", observed=STACKS)),
        result("smoke.baseline", Status.SKIP, reason="--no-smoke was given", scenario="smoke.baseline"),
    ),
    decisions=(
        replace(
            gpu_report().decisions[0],
            checks=("gpu.free", "gpu.clocks", "host.swap"),
            criteria=("gpu.*", "gpu.*", "host.*"),
        ),
    ),
    drift=Drift(lock="x", recorded="y"),  # nothing has drifted
    interrupted=True,
)
"""Problems, a note and a skipped training, of an interrupted run."""
REPORTS = {"cpu": cpu_report(), "gpu": gpu_report(), "varied": VARIED}


def terminal(report: Report, *, verbosity: int = 1, **canvas: int | bool) -> str:
    return render(report, "terminal", Canvas(verbosity=verbosity, **canvas))  # type: ignore[arg-type]


@pytest.mark.parametrize("verbosity", [1, 2])
@pytest.mark.parametrize("name", REPORTS)
def test_screen(name: str, verbosity: int, screen: SnapshotAssertion) -> None:
    assert terminal(REPORTS[name], verbosity=verbosity) == screen


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_lines_fit_the_width_except_commands_and_single_words(name: str, width: int) -> None:
    report = REPORTS[name]
    findings = [judged.finding for item in report.results for judged in item.findings]
    commands = {command for item in findings for command in (*item.remedy.commands, *item.rollback.commands)}
    commands |= {command for step in report.plan for command in step.commands}
    for line in terminal(report, width=width).splitlines():
        assert cell_len(line) <= width or line.strip() in commands or len(line.split()) <= 2
        assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
def test_commands_are_whole_lines(width: int) -> None:
    lines = [line.strip() for line in terminal(gpu_report(), width=width).splitlines()]
    assert LONG_COMMAND in lines
    assert MARKUP_COMMAND in lines


def test_families_keep_their_order_whatever_the_checklist() -> None:
    report = complete(cpu_report(), results=tuple(reversed(cpu_report().results)))
    lines = terminal(report).splitlines()
    order = [lines.index(heading) for heading in ("Versions", "GPUs", "Topology", "Host", "Training")]
    assert order == sorted(order)


def test_empty_report_is_readable() -> None:
    report = complete(gpu_report(), results=(), decisions=())
    last = " ".join(terminal(report).split())
    assert last.endswith(f"INCONCLUSIVE in 3 min 12 s: {report.verdict.reason}; no check")


def test_colours_change_nothing_but_the_escape_codes() -> None:
    plain = terminal(gpu_report())
    coloured = terminal(gpu_report(), colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_markup_like_text_is_kept() -> None:
    assert "[/bold] :smile: [red]x" in terminal(with_text(cpu_report(), "[/bold] :smile: [red]x"))


def test_stream_without_unicode_gets_names_as_they_are() -> None:
    text = terminal(with_text(cpu_report(), "Grüße"), unicode=False)
    assert text.replace("Grüße", "").isascii()
