from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from helpers.reports import (
    LONG_COMMAND,
    MARKUP_COMMAND,
    cpu_report,
    failure,
    finding,
    gpu_report,
    passing_report,
    result,
    unknown_report,
    waiver,
    with_text,
)
from kdoctor.engine.report import Drift, JudgedFinding, Report
from kdoctor.model import Severity, Status
from kdoctor.report.formats import render
from kdoctor.text.canvas import Canvas

WIDTHS = (40, 60, 80, 120)
REPORTS = {"cpu": cpu_report(), "gpu": gpu_report()}


def terminal(report: Report, **canvas: int | bool) -> str:
    return render(report, "terminal", Canvas(**canvas))  # type: ignore[arg-type]


def flat(text: str) -> str:
    return " ".join(text.split())


def section(text: str, heading: str) -> list[str]:
    """The lines of a section, without its heading."""
    _, _, rest = text.partition(f"\n\n{heading}\n")
    lines = rest.splitlines()
    end = next((place for place, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return lines[:end]


@pytest.mark.parametrize(
    "report",
    [passing_report(), cpu_report(), gpu_report(), unknown_report()],
    ids=["passed", "warning", "failed", "unknown"],
)
def test_screen(report: Report, screen: SnapshotAssertion) -> None:
    assert terminal(report) == screen


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_lines_fit_the_width_except_commands_and_single_words(name: str, width: int) -> None:
    report = REPORTS[name]
    *body, verdict = terminal(report, width=width).splitlines()
    findings = [judged.finding for item in report.results for judged in item.findings]
    commands = {command for item in findings for command in (*item.remedy.commands, *item.rollback.commands)}
    commands |= {command for decision in report.decisions for step in decision.steps for command in step.commands}
    for line in body:
        assert cell_len(line) <= width or line.strip() in commands or len(line.split()) <= 2
        assert line == line.rstrip()
    assert verdict.startswith(report.verdict.conclusion.value.upper())


@pytest.mark.parametrize("width", WIDTHS)
def test_commands_are_whole_lines(width: int) -> None:
    lines = [line.strip() for line in terminal(gpu_report(), width=width).splitlines()]
    assert LONG_COMMAND in lines
    assert MARKUP_COMMAND in lines


def test_first_line_names_the_interpreter() -> None:
    assert re.match(r"Target +/home/ada/job/.venv/bin/python \(CPython 3.11.7", terminal(cpu_report()))


def test_last_line_has_verdict_counts_and_time() -> None:
    last = terminal(gpu_report()).splitlines()[-1]
    assert last.startswith("FAIL in 3 min 12 s: 0 passed, 2 failed, 2 skipped, 1 unknown; ")
    assert last.endswith(gpu_report().verdict.reason)


def test_passed_check_shows_its_evidence() -> None:
    assert "versions.tensorflow-installed: tensorflow: 2.21.0" in terminal(cpu_report())


def test_every_check_and_every_status_is_named() -> None:
    text = terminal(cpu_report())
    for item in cpu_report().results:
        assert item.id in text
    for status in Status:
        assert f"  {status.value.upper()}" in text


def test_families_keep_their_order_whatever_the_checklist() -> None:
    report = replace(cpu_report(), results=tuple(reversed(cpu_report().results)))
    lines = terminal(report).splitlines()
    order = [lines.index(heading) for heading in ("Versions", "GPUs", "Topology", "Host", "Smoke trainings")]
    assert order == sorted(order)


def test_neighbours_skipped_for_the_same_reason_are_one_entry() -> None:
    text = flat(terminal(cpu_report()))
    assert "SKIP 3 checks: the checklist expects no GPUs gpu.count-expected, gpu.same-model, gpu.free" in text


def test_unknown_shows_its_reason_and_why_it_is_accepted() -> None:
    text = flat(terminal(cpu_report()))
    assert "its size cannot be read: Permission denied (accepted: the sandbox hides it)" in text


def test_failures_follow_the_checks_and_are_complete() -> None:
    failures = "\n".join(section(terminal(gpu_report()), "Failures"))
    for item in gpu_report().results:
        for shown in (judged.finding for judged in item.findings if judged.counts):
            for part in (
                f"{shown.subject}: {shown.observed}",
                f"Expected: {shown.expected}",
                f"Fix: {shown.remedy.summary}",
                f"Rollback: {shown.rollback.why}",
                f"Why it matters: {item.why}",
                f"Check: {item.id} ({item.severity.value}): {item.title}",
                *shown.remedy.commands,
                *shown.rollback.commands,
            ):
                assert part in flat(failures)
    assert "Not judged: 0000:80:00.0: " in failures


@pytest.mark.parametrize("name", REPORTS)
def test_failed_check_leads_with_its_finding(name: str) -> None:
    report = REPORTS[name]
    failed = next(item for item in report.results if item.status is Status.FAIL)
    first = failed.findings[0].finding
    text = flat(terminal(report))
    assert f"FAIL {first.subject}: {first.observed}" in text
    assert text.count(failed.title) == 1  # the label at the end of the failure


def test_most_severe_failure_is_last() -> None:
    mild = failure("host.shared-memory", finding("mild"), severity=Severity.WARNING)
    lines = section(terminal(replace(gpu_report(), results=(*gpu_report().results, mild))), "Failures")
    assert lines[0].startswith("  mild:")


def test_findings_with_the_same_fix_share_it() -> None:
    text = terminal(gpu_report())
    assert text.count("sudo systemctl reboot") == 1
    assert "  GPU 3 (0000:40:00.0): on" in text
    assert "  GPU 6 (0000:70:00.0): on" in text


def test_each_subject_keeps_its_expectation_under_a_shared_fix() -> None:
    report = replace(
        gpu_report(), results=(failure("gpu.free", finding("A", expected="1"), finding("B", expected="2")),)
    )
    lines = section(terminal(report), "Failures")
    assert lines[2:4] == ["    Expected: A: 1", "    Expected: B: 2"]


def test_why_it_matters_appears_once_a_check() -> None:
    other = finding("GPU 9", remedy=replace(finding().remedy, summary="Replace the GPU."))
    text = terminal(replace(gpu_report(), results=(failure("gpu.free", finding(), other),)))
    assert (text.count("Why it matters:"), text.count("Fix:"), text.count("Check: gpu.free")) == (1, 2, 2)


def test_waived_finding_stays_visible() -> None:
    rest = flat("\n".join(section(terminal(gpu_report()), "Waived")))
    assert rest.startswith("GPU 1 (0000:20:00.0): 8 lanes")
    assert "topology.pcie-width (error)" in rest
    assert "until 2030-12-31, by ml-platform: the riser card is replaced in March" in rest


def test_expired_waiver_is_shown_with_its_failure() -> None:
    judged = JudgedFinding(finding=finding(), waiver=waiver("gpu.free", expires=date(2020, 1, 1)), expired=True)
    text = terminal(replace(gpu_report(), results=(failure("gpu.free", findings=(judged,)),)))
    assert any("2020-01-01" in line and "ml-platform" in line for line in section(text, "Failures"))
    assert section(text, "Waived") == []


def test_scenario_shows_what_was_expected_and_measured() -> None:
    report = cpu_report()
    text = flat(terminal(report))
    for note in report.scenarios:
        assert f"{note.id} ({note.kind}) Expected: {note.expect}" in text
    for evidence in report.results[-2].evidence:
        assert f"- {evidence.subject}: {evidence.observed}" in text


def test_decision_names_checks_rule_owner_and_steps() -> None:
    assert section(terminal(gpu_report(), width=120), "Failure policy")[:8] == [
        "  Roll back at once: versions.driver-for-cuda",
        "    Rule: at_once: versions.*",
        "    Decision owner: the owner of the machine, within 30 minutes",
        "    Step 1: Install tensorflow 2.20.0:",
        f"        {LONG_COMMAND}",
        f"        {MARKUP_COMMAND}",
        "    Step 2: Check again:",
        "        kdoctor check",
    ]


def test_criteria_of_several_checks_name_their_checks() -> None:
    checks = ("gpu.free", "gpu.clocks", "host.swap")
    decision = replace(gpu_report().decisions[0], checks=checks, criteria=("gpu.*", "gpu.*", "host.*"))
    lines = section(terminal(replace(gpu_report(), decisions=(decision,))), "Failure policy")
    assert lines[1] == "    Rule: gpu.* (gpu.free, gpu.clocks); host.* (host.swap)"


def test_drift_is_a_section() -> None:
    lines = section(terminal(gpu_report(), width=120), "Changes since the last passing run")
    assert "ci/gpu-node.lock.yaml" in lines[0]
    assert lines[1] == "  - driver.version: 580.105.08 -> 575.57.08"
    assert "versions.driver-for-cuda, gpu.visible-to-driver" in lines[2]
    assert [line.split(":")[0] for line in lines[3:6]] == [
        "  - environment.NCCL_DEBUG",
        "  - packages.h5py",
        "  - Not compared",
    ]


def test_record_without_drift_is_not_a_section() -> None:
    same = replace(gpu_report(), drift=Drift(lock="x", recorded="y"))
    assert section(terminal(same), "Changes since the last passing run") == []


def test_unused_waiver_is_shown() -> None:
    (line,) = section(terminal(gpu_report(), width=120), "Unused waivers")[:1]
    assert line.startswith("  - topology.pairs (GPU 0 - GPU 1): until 2030")


def test_interruption_is_shown() -> None:
    interrupted = terminal(replace(cpu_report(), interrupted=True)).splitlines()
    (added,) = set(interrupted) - set(terminal(cpu_report()).splitlines())
    assert "interrupted" in added


def test_empty_report_is_readable() -> None:
    report = replace(gpu_report(), results=(), decisions=())
    assert terminal(report).endswith(f"{report.verdict.reason}\n")


def test_colours_change_nothing_but_the_escape_codes() -> None:
    plain = terminal(gpu_report())
    coloured = terminal(gpu_report(), colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = terminal(gpu_report())
    for name, value in (("COLUMNS", "20"), ("FORCE_COLOR", "1"), ("TERM", "dumb"), ("TTY_COMPATIBLE", "1")):
        monkeypatch.setenv(name, value)
    assert terminal(gpu_report()) == before


def test_codes_of_other_programs_do_not_reach_the_terminal() -> None:
    text = terminal(with_text(cpu_report(), "a\x1b[31mred\x1b]0;title\x07 \r\x9b2J\udcff"))
    assert "a\\x1b" not in text
    assert "ared\\x1b]0;title\\x07 \\x0d\\x9b2J\\udcff" in text


def test_markup_like_text_is_kept() -> None:
    assert "[/bold] :smile: [red]x" in terminal(with_text(cpu_report(), "[/bold] :smile: [red]x"))


def test_python_stacks_keep_their_lines() -> None:
    stacks = 'Thread 0x1:\n  File "a.py", line 1 in fit\n  File "b.py", line 2 in <module>'
    report = replace(gpu_report(), results=(failure("gpu.free", finding("case", observed=stacks)),))
    assert '  case: Thread 0x1:\n      File "a.py", line 1 in fit\n      File "b.py"' in terminal(report)


def test_stream_without_unicode_gets_escapes() -> None:
    text = terminal(with_text(cpu_report(), "Grüße"), unicode=False)
    assert text.isascii()
    assert "Gr\\xfc\\xdfe" in text


def test_skipped_smoke_check_shows_its_reason() -> None:
    skipped = result("smoke.baseline", Status.SKIP, reason="--no-smoke was given", scenario="smoke.baseline")
    assert "smoke.baseline: --no-smoke was given" in flat(terminal(replace(cpu_report(), results=(skipped,))))
